"""Linear algebra: decompositions."""
