"""The performance model: predicted times, cache traffic, the bottleneck, the speed-up of an opt."""
