"""The intermediate representation, one node type for all of its levels."""
