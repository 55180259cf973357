"""The loop behind HTTP, for a trusted client: one honest answer within a deadline, and a record of it."""
