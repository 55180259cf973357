"""The prompts, in YAML beside this file and beside the benchmark's methods, and the builder that assembles them."""

from .builder import SECTIONS, Prompt, check_prompts, phrase, prompt, prompt_files, prompt_names

__all__ = ["SECTIONS", "Prompt", "check_prompts", "phrase", "prompt", "prompt_files", "prompt_names"]
