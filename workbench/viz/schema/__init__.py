"""What crosses the wire and what is saved, as types: one file a subject."""
