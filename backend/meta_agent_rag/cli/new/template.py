"""A template: the initial files of a new member. One YAML file per kind; adding a file adds a kind."""

from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import BaseModel

from ...discovery import named

FOLDER = Path(__file__).parent / "templates"


class Place(BaseModel, frozen=True, extra="forbid"):
    """Where files go, as path and name of the text; the `next` command; and `words` inserted only for this place."""

    files: Mapping[str, str]
    next: str
    words: Mapping[str, str] = {}


class Template(BaseModel, frozen=True, extra="forbid"):
    """A kind's texts, and where they go: into the `tree` of a clone, or into the user's `own` folder.

    Texts, paths and words may contain `$name`, `$folder`, `$benchmarks` (the package of the benchmark), `$on_path` (the
    option by which pytest finds that package, if needed), the place's `words`, and the `unique` fields: fields that no
    two members may share, each with the first value to try. `members` is the function, as `module:function`, that maps
    a folder to all members; `reserved` gives the names that none may have, and `setting` is the setting that names the
    user's own folder.
    """

    members: str
    setting: str
    reserved: str | None = None
    unique: Mapping[str, int] = {}
    tree: Place
    own: Place
    texts: Mapping[str, str]


def template_of(kind: str) -> Template:
    """The template of a kind. Raises `UnknownNameError`."""
    file = named("kind", kind, {file.stem: file for file in FOLDER.glob("*.yaml")})
    return Template.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
