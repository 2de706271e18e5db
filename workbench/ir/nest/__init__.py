"""The loop nest of a kernel: axes, placement of statements, storage of values, estimates."""
