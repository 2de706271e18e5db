"""Rules of values, movement and index arithmetic."""
