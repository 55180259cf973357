"""One question of a client: within its deadline, understood by its session, streamed if asked for."""
