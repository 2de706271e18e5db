"""The panels, a folder each: script, style, text, and rows of the record."""
