"""The prompts, and what assembles them: the sections of a YAML file, always in the same order.

Only `instruction` is required. A section is a text, or a list that becomes bullets; `$name` is replaced
by a value given to `Prompt.text`.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

import yaml

from ..discovery import named
from ..errors import PromptError, UnknownNameError
from ..shipped import extensions

SECTIONS = (
    "role",
    "instruction",
    "context",
    "output_constraints",
    "style_or_tone",
    "output_format",
    "examples",
    "goal",
    "input_data",
    "reasoning_strategy",
    "closing",
)
_HEADINGS = {
    "context": "Context:",
    "output_constraints": "Rules:",
    "style_or_tone": "Style:",
    "output_format": "Output format:",
    "examples": "Examples:",
    "goal": "Goal:",
    "reasoning_strategy": "How to think:",
}
_TABLES = {"phrases", "stages"}
"""YAML files that are not prompts."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt by name, with its sections as in the file."""

    name: str
    sections: Mapping[str, str]

    def text(self, **values: object) -> str:
        """The assembled prompt; values are inserted verbatim and never interpreted as templates.

        Raises `PromptError` if the prompt needs a value that was not given.
        """
        known = {name: str(value) for name, value in values.items()}
        sections = [section for section in SECTIONS if section in self.sections]
        try:
            filled = [(section, Template(self.sections[section]).substitute(known)) for section in sections]
        except (KeyError, ValueError) as error:
            raise PromptError(f"The prompt {self.name!r} cannot be filled in: {error}.") from None
        headed = ((f"{_HEADINGS[section]}\n" if section in _HEADINGS else "", text) for section, text in filled)
        return "\n\n".join(heading + text.strip() for heading, text in headed if text.strip())

    @property
    def values(self) -> frozenset[str]:
        """The names of the values in its sections. Raises `PromptError` for a `$` without a name."""
        templates = {section: Template(text) for section, text in self.sections.items()}
        for section, template in templates.items():
            if not template.is_valid():
                raise PromptError(f"The section {section!r} of the prompt {self.name!r} has a single '$'; write '$$'.")
        return frozenset(name for template in templates.values() for name in template.get_identifiers())

    @property
    def digest(self) -> str:
        """First 12 hex digits of the SHA-256 over its sections; it changes with the prompt."""
        return hashlib.sha256(repr(sorted(self.sections.items())).encode()).hexdigest()[:12]


@cache
def prompt_files() -> Mapping[str, Path]:
    """The files of the built-in prompts by name: those of this folder, and those beside the benchmark's methods."""
    found = {file.stem: file for folder in _folders() for file in folder.glob("*.yaml") if file.stem not in _TABLES}
    return MappingProxyType(dict(sorted(found.items())))


def prompt_names(methods: Path | None = None) -> list[str]:
    """Names of the built-in prompts, and of those beside the user's `methods` (METHODS_DIR)."""
    beside = [] if methods is None else [file.stem for file in methods.glob("*.yaml")]
    return sorted({*prompt_files(), *beside})


def require_folder(setting: str, folder: Path, of_what: str) -> None:
    """Raise `PromptError` unless the user's folder exists."""
    if not folder.is_dir():
        raise PromptError(f"{setting} {str(folder)!r} is not a folder; give a folder with {of_what}.")


def own_yaml(file: Path) -> Any:
    """The contents of a YAML file. Raises `PromptError` if it cannot be read."""
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise PromptError(f"The file {str(file)!r} cannot be read ({why}); write YAML in UTF-8.") from None


def phrase(key: str) -> str:
    """A sentence in `phrases.yaml`, inserted into prompts as a value."""
    return named("phrase", key, _phrases())


@cache
def _phrases() -> Mapping[str, str]:
    tables = [path for folder in _folders() if (path := folder / "phrases.yaml").is_file()]
    rows = (row for path in tables for row in own_yaml(path).items())
    return {key: text.strip() for key, text in rows}


@cache
def prompt(name: str, folder: Path | None = None, *, methods: Path | None = None) -> Prompt:
    """The prompt with that name: from `folder` if it has one, else built-in, else beside the user's `methods`.

    Raises `UnknownNameError`, or `PromptError`, which names the offending key.
    """
    if folder is not None:
        require_folder("PROMPTS_DIR", folder, "prompt files")
    built_in = prompt_files().get(name)
    own = [place / f"{name}.yaml" for place in (folder, None if built_in else methods) if place is not None]
    file = next((file for file in own if file.is_file()), built_in)
    if file is None:
        raise UnknownNameError("prompt", name, prompt_names(methods))
    return _read(name, own_yaml(file))


def check_prompts(folder: Path | None, *, methods: Path | None = None) -> None:
    """Validate every prompt in the user's folder before the first call.

    Raises `PromptError`, which names the file and the offending key: a file that replaces no prompt, built in or beside
    the user's `methods`, an unknown section, or a `$name` that the replaced prompt does not have.
    """
    if folder is None:
        return
    require_folder("PROMPTS_DIR", folder, "prompt files")
    if misnamed := sorted(folder.glob("*.yml")):
        raise PromptError(f"The file {str(misnamed[0])!r} is not read; give its name the ending .yaml.")
    for file in sorted(folder.glob("*.yaml")):
        name = file.stem
        if name not in prompt_names(methods):
            known = ", ".join(prompt_names(methods))
            raise PromptError(f"The file {str(file)!r} replaces no prompt; rename it to one of: {known}.")
        own, built_in = prompt(name, folder, methods=methods), prompt(name, methods=methods)
        if strange := sorted(own.values - built_in.values):
            known = ", ".join(f"${name}" for name in sorted(built_in.values)) or "none"
            raise PromptError(f"The prompt {name!r} uses the unknown placeholder ${strange[0]}; known ones: {known}.")


def _read(name: str, content: Any) -> Prompt:
    if not isinstance(content, dict) or "instruction" not in content:
        raise PromptError(f"The prompt {name!r} lacks the required section 'instruction'.")
    for section in content:
        if section not in SECTIONS:
            raise PromptError(
                f"The prompt {name!r} has an unknown section {section!r}; choose from: {', '.join(SECTIONS)}."
            )
    sections = {}
    for section, value in content.items():
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            sections[section] = "\n".join(f"- {item.strip()}" for item in value)
        elif not isinstance(value, str):
            raise PromptError(f"The section {section!r} of the prompt {name!r} must be a text or a list of texts.")
        else:
            sections[section] = value.strip()
    return Prompt(name=name, sections=sections)


def _folders() -> tuple[Path, ...]:
    return Path(str(files(__package__))), *extensions()


LONGEST_ATTRIBUTE = 300
"""The most characters of a title or heading in a tag."""

_TAG = re.compile(r"<(?=\s*(?:/\s*)?(?:passage|conversation|summary|points))", re.IGNORECASE)


def fenced(text: str) -> str:
    """The text with the brackets of the prompts' own tags escaped; any other text is unchanged.

    >>> fenced("1 < 2 <</conversation>")
    '1 < 2 <&lt;/conversation>'
    """
    return _TAG.sub("&lt;", text)


def attribute(text: str) -> str:
    """A title or heading for the attribute of a tag: on one line, of bounded length, and escaped."""
    line = " ".join(text.split())
    if len(line) > LONGEST_ATTRIBUTE:
        line = f"{line[: LONGEST_ATTRIBUTE - 1]}\u2026"
    # apostrophes are not escaped: a small model copies "&#x27;" into its answer
    return escape(line, quote=False).replace('"', "&quot;")


_TOKENS_PER_BYTE = 0.35


def estimate_tokens(text: str) -> int:
    """An estimate that is rarely too low.

    Measured over 300 Wikipedia paragraphs with SmolLM2's tokenizer: 0.27 tokens per UTF-8 byte on
    average, 0.35 at the 95th percentile, at most 0.40.
    """
    return int(len(text.encode("utf-8")) * _TOKENS_PER_BYTE) + 1
