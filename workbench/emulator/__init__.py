"""The emulator: a linear program run by all work-items in lock step, with counts, races and wrong
values."""
