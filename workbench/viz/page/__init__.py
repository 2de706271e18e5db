"""The page: its scripts and style, and the writer that joins them to one document."""
