"""Pictures, from the folders in which they are distributed to packed arrays."""
