"""What the tabs Chat and Coach share: a message and all that follows, and the visitor's documents."""
