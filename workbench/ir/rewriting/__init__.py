"""Rewriting: rules as rows, the driver, passes, and why a rule does not fire."""
