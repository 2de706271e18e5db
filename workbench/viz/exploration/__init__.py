"""Explorations: `explore`, the Exploration that it returns, and a new plan of it."""
