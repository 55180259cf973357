"""The serving side of a stage: its role and endpoint, the server's identity, and the connection to it."""
