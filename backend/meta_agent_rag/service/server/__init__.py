"""The processes behind the address: uvicorn, workers, logs and traces."""
