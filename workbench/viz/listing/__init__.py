"""Code as people read it: the statement of each line, what instructions do and cost."""
