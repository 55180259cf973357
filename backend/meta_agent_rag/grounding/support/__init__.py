"""Is a claim supported by the passages that it cites? By rules, and where they do not settle it by the critic."""
