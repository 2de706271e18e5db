"""EXP, TANH, POW and other functions: the formula of each, and the table that expands them."""
