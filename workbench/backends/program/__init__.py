"""Facts of a linear program that every renderer needs, and the source that a runtime loads."""
