"""Summaries of documents over HTTP."""
