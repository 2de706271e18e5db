"""Files of explorations, for other people to open: written, and read."""
