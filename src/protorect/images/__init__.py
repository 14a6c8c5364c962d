"""Find, list and decode pictures."""
