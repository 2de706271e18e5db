"""The kinds of opts, one file each."""
