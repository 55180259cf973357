"""Orders to a language model in retrieved text: trains the model that looks for them, and measures it."""
