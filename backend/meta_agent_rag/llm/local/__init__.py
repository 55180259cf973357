"""Models that the embedded provider can run: the list, which of them serves, and how they get onto this machine."""
