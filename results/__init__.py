"""Runs behind the published numbers, and the tables and the figure made from them."""
