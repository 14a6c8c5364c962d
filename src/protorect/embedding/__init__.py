"""Features of pictures by a trained network, cached or written with what made them."""
