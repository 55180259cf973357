"""Encoders: from texts to vectors, the sources of their files, and their exports to ONNX."""
