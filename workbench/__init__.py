"""workbench: the tensor-to-kernel stack, to step through, change by hand and time."""
