"""The fit of the calibrated monitor: what `python -m benchmarks.calibrate` is made of."""
