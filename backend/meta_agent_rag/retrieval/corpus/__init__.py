"""A corpus on disk: its catalogue and manifest, where its indexes lie, edits and moves."""
