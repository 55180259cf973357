"""Injected instructions in retrieved text: training and evaluation of the model that detects them."""
