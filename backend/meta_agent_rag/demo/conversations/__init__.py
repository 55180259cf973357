"""Shared by the tabs Chat and Coach: the handling of a message, and the visitor's documents."""
