"""A folder of pictures sorted by class."""
