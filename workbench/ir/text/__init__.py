"""Text of the IR: one that parses back, and one that people read."""
