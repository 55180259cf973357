"""Conversations about documents: what a message wants, what a follow-up refers to, and what is remembered."""
