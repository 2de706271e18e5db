"""The search for faster opts: a beam of candidates, measured, with their results checked."""
