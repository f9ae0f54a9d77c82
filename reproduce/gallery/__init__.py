"""The gallery: problems as a stranger states them, and how well the defaults solve them."""
