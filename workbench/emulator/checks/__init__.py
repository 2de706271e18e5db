"""Checks of a program before its run on the emulator, and of the run after it."""
