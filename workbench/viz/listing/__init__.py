"""Code listings: the statement of each line, and the meaning and cost of instructions."""
