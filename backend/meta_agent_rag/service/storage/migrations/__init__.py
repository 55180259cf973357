"""How the tables came to be, one file a step; run when the database is opened."""
