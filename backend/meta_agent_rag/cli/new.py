"""`marag new KIND NAME`: creates a working deficit, operator, route, method or data set to adapt, and its test.

Kinds that live in the source tree alone (a parser, a hook, an analysis) are copied there from the
documented examples; their contract suites are their tests.

The texts of the others are one YAML file in `templates`; adding a file adds a kind. `tree` says where the files go in
a clone, `own` where in a user's folder: the `files` by path with the name of their text, the `next` command, and
`words` for this place alone. Texts, paths and words may contain `$name`, `$folder`, `$benchmarks` (the package of the
benchmark), `$on_path` (the option by which pytest finds that package, if needed), those `words`, and the `unique`
fields: fields that no two members may share, each with the first value to try. `members` is the function, as
`module:function`, that maps a folder to all members, `reserved` gives the names that none may have, and `setting` names
the user's folder.
"""

import importlib
import keyword
import pkgutil
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..discovery import named, require_name
from ..errors import InputError
from .shared.command import Assignments, Json, benchmark_package, command, plain, settings_of, show

if TYPE_CHECKING:
    from ..settings import Settings

_TEMPLATES = {file.stem: file for file in sorted((Path(__file__).parent / "templates").glob("*.yaml"))}
_DOCUMENTED = {
    "analysis": ("extending.md", "An analysis", "test_analyses.py"),
    "hook": ("extending-documents.md", "A hook of the coach", "test_coach_hooks.py"),
    "parser": ("extending-documents.md", "A parser", "test_parsers.py"),
}
"""The page and the heading of each example, and the contract suite of its kind."""
_EXAMPLE = re.compile(r"`(?P<path>\S+/(?P<name>\w+)\.py)`\n\n```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_KINDS = sorted((*_TEMPLATES, *_DOCUMENTED))
_IMPORTS = re.compile(r"(?:^from \S+ import .*\n)+", re.MULTILINE)


@command()
def new(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of: {', '.join(_KINDS)}.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and underscores.")],
    set_: Assignments = None,
    json_: Json = False,
) -> None:
    """Create a working example of a kind with its test, for you to adapt.

    In a clone, the files go into the source tree and the generated documents are updated. Elsewhere, or if the kind's
    setting (DEFICITS_DIR, OPERATORS_DIR, ROUTES_DIR, METHODS_DIR, DATASETS_DIR) is set, they go into that folder, by
    default `my_deficits` etc. A parser, hook or analysis needs a clone.
    """
    named("kind", kind, dict.fromkeys(_KINDS))
    files, following = _copied(kind, name) if kind in _DOCUMENTED else create(kind, name, settings_of(set_))
    lines = [*(f"written: {path}" for path in files), f"next: {following}"]
    show({"files": files, "next": following}, *map(plain, lines), json_=json_)


def create(kind: str, name: str, settings: "Settings") -> tuple[list[str], str]:
    """Write the files of a new member of a kind, and return them with the next step in one line.

    Raises `UnknownNameError`, and `InputError` for a name that is malformed or taken, or a folder that is not
    writable.
    """
    import yaml

    from ..shipped import clone

    template = yaml.safe_load(_TEMPLATES[kind].read_text(encoding="utf-8"))
    _require_usable(kind, name, pkgutil.resolve_name(template["reserved"]) if "reserved" in template else ())
    setting: str = template["setting"]
    set_folder: Path | None = getattr(settings, setting)
    root = clone() if set_folder is None else None
    place, base = template["own" if root is None else "tree"], root or Path()
    folder = set_folder or Path(f"my_{setting.removesuffix('_dir')}")
    package, beside = benchmark_package()
    on_path = f" -o pythonpath={shlex.quote(str(beside))}" if beside else ""
    words = {"name": name, "folder": str(folder), "benchmarks": package, "on_path": on_path}
    discover: Any = pkgutil.resolve_name(Template(template["members"]).substitute(words))
    found = discover(folder if root is None and folder.is_dir() else None)
    members = list(found.values() if isinstance(found, Mapping) else found)
    if name in {member.name for member in members}:
        raise InputError(f"Another {kind} is already named {name!r}; choose a different name.")
    for field, first in template.get("unique", {}).items():
        taken = {getattr(member, field) for member in members}
        words[field] = str(next(value for value in count(first) if value not in taken))
    texts = {base / path: text for path, text in _filled(template["texts"], place, words)}
    _write(texts, setting=setting.upper())
    shown = [str(path.relative_to(base) if path.is_relative_to(base) else path) for path in texts]
    if root is not None:
        shown += _generated(root)
    return shown, Template(place["next"]).substitute(words, folder=shlex.quote(str(folder)))


def _copied(kind: str, name: str) -> tuple[list[str], str]:
    """Write the documented example of a kind under a new name, beside the built-in members."""
    from ..shipped import clone

    _require_usable(kind, name)
    root = clone()
    if root is None:
        raise InputError(f"A {kind} is a file of the source tree; run this command in a clone of the repository.")
    page, heading, suite = _DOCUMENTED[kind]
    section = (root / "docs" / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    example = _EXAMPLE.search(section)
    if example is None:
        raise InputError(f"docs/{page} has no example under {heading!r}; restore the page.")
    file = root / Path(example["path"]).with_name(f"{name}.py")
    _write({file: example["text"].replace(f'"{example["name"]}"', f'"{name}"')}, setting="the working folder")
    shown = [str(file.relative_to(root)), *_generated(root)]
    return shown, f"`uv run pytest tests/contracts/{suite}` runs its contract suite; change the file"


def _require_usable(kind: str, name: str, reserved: Collection[str] = ()) -> None:
    require_name(kind, name, reserved)
    if keyword.iskeyword(name):
        raise InputError(f"{name!r} is a Python keyword; choose a different name.")


def _filled(texts: Mapping[str, str], place: Mapping[str, Any], words: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Each file's path and text. Raises `InputError` for an existing prompt."""
    from ..prompts import prompt_names

    own = {key: Template(text).substitute(words) for key, text in place.get("words", {}).items()}
    for path, text in place["files"].items():
        file = Template(path).substitute(words)
        if file.endswith(".yaml") and Path(file).stem in prompt_names():
            raise InputError(f"A prompt is already named {Path(file).stem!r}; choose a different name.")
        filled = Template(texts[text]).substitute(words, **own)
        # imports sorted by module, since those of a place are inserted anywhere
        yield file, _IMPORTS.sub(lambda lines: "".join(sorted(lines[0].splitlines(True), key=_module)), filled)


def _module(line: str) -> str:
    return line.split()[1]


def _write(texts: Mapping[Path, str], *, setting: str) -> None:
    """Write all files, or none."""
    if existing := next((path for path in texts if path.exists()), None):
        raise InputError(f"The file {str(existing)!r} already exists; choose a different name.")
    written: list[Path] = []
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink()
        raise InputError(
            f"{error.filename!r} cannot be written ({error.strerror}); "
            f"check its permissions, or set {setting} to another folder."
        ) from None


def _generated(root: Path) -> list[str]:
    """Update the documents generated from code; returns the files that changed."""
    import runpy
    from contextlib import redirect_stdout
    from io import StringIO

    script = root / "docs" / "generate.py"
    importlib.invalidate_caches()  # modules have been written since the last import
    with redirect_stdout(StringIO()) as said:
        try:
            runpy.run_path(str(script))["main"]([])
        except Exception as error:
            raise InputError(
                f"The files were written, but {script.name} failed ({type(error).__name__}: {error}); "
                "fix that, then run `uv run python docs/generate.py`."
            ) from error
    return [line.removeprefix("written: ") for line in said.getvalue().splitlines()]
