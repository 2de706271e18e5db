"""Examples of each rule, which tests check and the page shows."""
