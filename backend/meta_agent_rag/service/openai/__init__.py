"""The service as clients of OpenAI's API know it: models, chat completions and errors in their form."""
