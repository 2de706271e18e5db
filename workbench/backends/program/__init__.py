"""What every writer needs of a linear program, and the source that a runtime loads."""
