"""EXP, TANH, POW and their like: the formula of each, and the table that expands them."""
