"""The performance model: predicted times, bytes for each cache, the bottleneck, the gain of an
opt."""
