"""The migrations of the tables, one file per step; run when the database is opened."""
