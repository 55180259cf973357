"""The service's database: its connection, its tables, and their migrations."""
