"""The search for faster opts: a beam of candidates, measured and compared with the expression."""
