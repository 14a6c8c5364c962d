"""Plots as SVG text, for a page, a document or a file of their own."""
