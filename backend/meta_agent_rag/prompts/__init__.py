"""Every prompt, in YAML beside this file, and the one builder that assembles them."""

from .builder import SECTIONS, Prompt, check_prompts, phrase, prompt, prompt_names

__all__ = ["SECTIONS", "Prompt", "check_prompts", "phrase", "prompt", "prompt_names"]
