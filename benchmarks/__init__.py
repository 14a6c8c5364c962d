"""Speed and memory, as ratios to what the machine allows, measured in the same run."""
