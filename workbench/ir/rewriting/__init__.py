"""Rewriting: rules as rows, the driver, passes, and explanations of a rule that does not fire."""
