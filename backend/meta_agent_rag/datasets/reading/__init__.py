"""Reading of data files, and the shapes that data sets share."""
