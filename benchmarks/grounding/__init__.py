"""What the checks on grounded answers withhold and let through, from the rows of `benchmarks.grounded`."""
