"""Shared by several parsers: tables, running heads, archives."""
