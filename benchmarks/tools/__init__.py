"""Tools of this repository: packing of runs, and the tables of the documents."""
