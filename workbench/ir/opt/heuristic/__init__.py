"""The default opts: a table of steps for processors."""
