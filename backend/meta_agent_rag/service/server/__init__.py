"""The server processes: uvicorn, workers, logs and traces."""
