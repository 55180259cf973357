"""A call of the loop: packed evidence, message layout, and the requested JSON."""
