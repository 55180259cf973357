"""A template: what the files of a new member begin as. One YAML file for each kind; a further kind is one more file."""

from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict

from ...errors import UnknownNameError

FOLDER = Path(__file__).parent / "templates"


class Place(BaseModel):
    """Where files go, as path and name of the text; the `next` command; and `words` that only this place puts in."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: Mapping[str, str]
    next: str
    words: Mapping[str, str] = {}


class Template(BaseModel):
    """A kind's texts, and where they go: into the `tree` of a clone, or into a folder of one's `own`.

    Texts, paths and words put in `$name`, `$folder`, `$benchmarks` (the package of the benchmark), `$on_path` (the
    option by which pytest finds that package, where it needs one), what the place brings as `words`, and what is
    `unique`: fields that no two members may share, each with the first value to try. `members` is the function, as
    `module:function`, from a folder to all members; `reserved` gives names that none may have, and `setting` is the
    setting that names a folder of one's own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    members: str
    setting: str
    reserved: str | None = None
    unique: Mapping[str, int] = {}
    tree: Place
    own: Place
    texts: Mapping[str, str]


def template_of(kind: str) -> Template:
    """The template of a kind. Raises `UnknownNameError`."""
    files = {file.stem: file for file in FOLDER.glob("*.yaml")}
    if kind not in files:
        raise UnknownNameError("kind", kind, list(files))
    return Template.model_validate(yaml.safe_load(files[kind].read_text(encoding="utf-8")))
