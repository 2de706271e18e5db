"""The clock: timing in turns, cold caches, and the machine's best speeds."""
