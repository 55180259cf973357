"""Finding passages: encoders, stores, fusion, guardrails, and the corpus on disk.

This layer is independent of the agent, of language models, and of benchmarks.
"""
