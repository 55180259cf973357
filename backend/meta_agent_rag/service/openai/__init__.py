"""An interface compatible with OpenAI's API: models, chat completions and errors in its format."""
