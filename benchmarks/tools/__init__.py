"""Tools of this repository: screenshots, the packed run that ships, the check of the service's schema."""
