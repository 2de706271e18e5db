"""The user's names: variables and modules, and the nodes that they refer to."""
