"""Networks, the cosine classifier, and weights that come with the package."""
