"""Texts to vectors: the encoders, where their files come from, and their exports to ONNX."""
