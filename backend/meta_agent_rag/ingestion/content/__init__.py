"""What several parsers need: tables, running heads, archives."""
