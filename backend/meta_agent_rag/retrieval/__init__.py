"""Finding passages: encoders, stores, fusion, guardrails, and the corpus on disk.

This layer knows nothing of the agent, of models that write, or of benchmarks.
"""
