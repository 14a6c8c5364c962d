"""What the paper published, and the experiments that measure it again."""
