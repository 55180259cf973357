"""The record of every answer: a row before the response is sent, kept on this machine until the database has it."""
