"""One question of a client: within its deadline, interpreted in its session, streamed on request."""
