"""A corpus on disk: its catalogue and manifest, the places of its indexes, edits and moves."""
