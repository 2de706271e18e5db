"""Text: rows as lines."""
