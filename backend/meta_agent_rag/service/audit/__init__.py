"""The record of every answer: a row before the response leaves, kept on this machine until the database has it."""
