"""An exploration as a file that somebody else opens: written, and read."""
