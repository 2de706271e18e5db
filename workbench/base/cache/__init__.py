"""Files in the user's cache folder."""
