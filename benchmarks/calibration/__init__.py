"""The fit of the calibrated monitor: the parts of `python -m benchmarks.calibrate`."""
