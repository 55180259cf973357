"""The built-in operators of a derivation: one file each, exporting `OPERATOR`."""
