"""Tools of this repository: screenshots, packing of runs, the check of the service's schema."""
