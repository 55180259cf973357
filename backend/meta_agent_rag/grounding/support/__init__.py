"""Is a claim supported by the passages that it cites? Decided by rules, and by the critic where they do not suffice."""
