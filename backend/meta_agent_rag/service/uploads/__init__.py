"""Documents sent by clients: streamed to disk within limits, then added to a corpus one after the other."""
