"""Values and vocabulary that all layers share: errors, dtypes, targets, settings, traces,
interrupts."""
