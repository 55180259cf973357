"""Where a stage is served: its endpoint, the connection to it, the identity of the model behind it, and its faults."""
