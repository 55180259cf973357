"""The loop behind HTTP, for a trusted client: one verified answer within a deadline, and a record of it."""
