"""What serves a stage: its role and endpoint, what the server says of itself, and the connection to it."""
