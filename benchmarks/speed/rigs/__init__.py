"""What the measurements run against: services, loads and databases in processes of their own."""
