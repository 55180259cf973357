"""The prompts, in YAML files here and beside the benchmark's methods, and the builder that assembles them."""

from .builder import (
    SECTIONS,
    Prompt,
    check_prompts,
    own_yaml,
    phrase,
    prompt,
    prompt_files,
    prompt_names,
    require_folder,
)

__all__ = [
    "SECTIONS",
    "Prompt",
    "check_prompts",
    "own_yaml",
    "phrase",
    "prompt",
    "prompt_files",
    "prompt_names",
    "require_folder",
]
