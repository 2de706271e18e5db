"""A run: what was recorded as rows, as text, as a trace for other viewers, and beside another."""
