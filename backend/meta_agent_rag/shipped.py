"""Data that comes with the package: the sample questions, a recorded run and the sample course."""

from importlib.resources import files
from pathlib import Path

from .errors import CorpusError

_CHECKOUT = Path(__file__).parents[2]
_IN_CHECKOUT = {
    "questions.json": _CHECKOUT / "benchmarks" / "sample" / "questions.json",
    "run.zip": _CHECKOUT / "benchmarks" / "recorded" / "run.zip",
    "course": _CHECKOUT / "docs" / "examples" / "course",
}


def shipped(name: str) -> Path:
    """A file or folder that comes with the package. Raises `CorpusError` where it was not installed.

    A wheel carries them in its folder `sample`; in a checkout they lie where they are made.
    """
    packaged = Path(str(files("meta_agent_rag"))) / "sample" / name
    found = next((path for path in (packaged, _IN_CHECKOUT[name]) if path.exists()), None)
    if found is None:
        raise CorpusError(f"The sample's {name!r} is not installed; reinstall the package, or use data of your own.")
    return found
