"""Measurements of speed, memory and accuracy, and the tables of the documents made from them."""
