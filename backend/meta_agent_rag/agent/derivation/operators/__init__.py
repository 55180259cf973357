"""The built-in operators of a derivation; a file exports one `OPERATOR`, or several."""
