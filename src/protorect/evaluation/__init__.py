"""Feature tables, episodes and the evaluation of methods on them."""
