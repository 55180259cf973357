"""Models for the embedded provider: the list, the choice of one, and their download."""
