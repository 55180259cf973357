"""Data that comes with the package: the sample questions, recorded runs and the sample course."""

from importlib.resources import files
from pathlib import Path

from .errors import CorpusError

_PACKAGE = Path(str(files("meta_agent_rag")))
_CHECKOUT = Path(__file__).parents[2]
_EXTENSIONS = ("benchmarks/methods", "benchmarks/judge")
_PLACES = {
    "questions.json": "benchmarks/sample/questions.json",
    "hotpotqa.json": "benchmarks/sample/hotpotqa.json",
    "2wikimultihopqa.json": "benchmarks/sample/2wikimultihopqa.json",
    "2wikimultihopqa.zip": "benchmarks/recorded/2wikimultihopqa.zip",
    "hotpotqa.zip": "benchmarks/recorded/hotpotqa.zip",
    "musique.zip": "benchmarks/recorded/musique.zip",
    "held_out.json": "benchmarks/recorded/held_out.json",
    "course": "docs/examples/course",
    "deficits": "docs/examples/deficits",
}


def extensions() -> tuple[Path, ...]:
    """Folders of the benchmark with prompts, phrases and stages for the code beside them."""
    bases = (_PACKAGE, _CHECKOUT)
    found = (next((path for base in bases if (path := base / name).is_dir()), None) for name in _EXTENSIONS)
    return tuple(path for path in found if path is not None)


def shipped(name: str) -> Path:
    """A file or folder that ships with the package: inside it in a wheel, at the same path in a clone.

    Raises `CorpusError` if it was not installed.
    """
    found = next((path for base in (_PACKAGE, _CHECKOUT) if (path := base / _PLACES[name]).exists()), None)
    if found is None:
        raise CorpusError(f"The sample's {name!r} is not installed; reinstall the package, or use your own data.")
    return found


def clone() -> Path | None:
    """The root of the clone that this package runs from, if the working folder is inside it."""
    in_a_clone = _CHECKOUT / "backend" / _PACKAGE.name == _PACKAGE
    return _CHECKOUT if in_a_clone and Path.cwd().is_relative_to(_CHECKOUT.resolve()) else None
