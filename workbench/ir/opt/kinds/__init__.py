"""The opts, one file and one record each."""
