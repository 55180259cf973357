"""What the measurements run against: services, loads and databases in their own processes."""
