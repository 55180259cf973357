"""Documents that clients send: streamed to disk within limits, then taken into a corpus one after the other."""
