"""Text of the IR: one form that parses back, and one for people."""
