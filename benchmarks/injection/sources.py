"""Training texts: files of labelled texts, and harmless texts found on any machine.

Descriptions and licences of installed packages, Python's docstrings and program messages in other languages are full
of imperatives, but none addresses a model. The trained model stores nothing from which they could be reconstructed.
"""

import ast
import gettext
import gzip
import json
import random
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TypeVar

import yaml

from meta_agent_rag.errors import InputError
from meta_agent_rag.ingestion.chunkers.characters import spans

SEED = 1
PLAIN = ("indirect_plain_instruction", "code_payload")
"""Attacks that read like ordinary requests: their rate is only reported."""
OVERRIDES = ("indirect_override", "override_snippet", "roleplay_jailbreak", "sysprompt_extraction")
"""Attacks that should be detected."""
_DOUBTFUL = ("deepset_direct",)
_FRAMES = ("report_doc",)
"""Labelled as harmless, but containing the frame of an attack."""
_LANGUAGES = ("de", "fr", "es", "it", "pt_BR", "ru", "zh_CN", "ja")
_LENGTH = 900
_SHORTEST = 40
_OWN = "meta-agent-rag"
T = TypeVar("T")
_NO_PROSE = ("test", "idlelib", "lib2to3", "site-packages", "dist-packages")


@dataclass(frozen=True, kw_only=True)
class LabelledText:
    """One text of a training set. Texts with the same `group` are held out together.

    `mixed`: the attack is only a part of it; `doubtful`: it may contain no visible attack.
    """

    text: str
    attack: bool
    kind: str
    group: str
    frame: str = ""
    goal: str = ""
    language: str = ""
    mixed: bool = False
    doubtful: bool = False
    weight: float = 1.0


def read(path: Path, *, attack: bool) -> list[LabelledText]:
    """Texts of a file: JSON lines with `text` and `kind`, or YAML with the texts of each kind."""
    try:
        rows = _yaml_rows(path) if path.suffix == ".yaml" else _json_rows(path)
        return [_labelled(row["text"], row["kind"], row.get("source", ""), attack=attack) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise InputError(f"{str(path)!r} cannot be read ({error!r}); give JSON lines with `text` and `kind`.") from None


def paragraphs(path: Path, count: int) -> list[LabelledText]:
    """Some paragraphs of an encyclopedia: JSON lines with `title` and `text`, plain or gzipped."""
    try:
        texts = [f"{row['title']}\n{row['text']}" for row in _json_rows(path)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read ({error!r}); give JSON lines with `title` and `text`."
        ) from None
    return [_harmless(text, "paragraph", f"paragraph {number % 20}") for number, text in enumerate(_some(texts, count))]


def descriptions() -> list[LabelledText]:
    """The READMEs and licences of the installed packages."""
    found = []
    for package in sorted(distributions(), key=lambda one: one.metadata["Name"]):
        name = package.metadata["Name"]
        if name != _OWN:
            found += [_harmless(part, "readme", f"readme {name}") for part in _parts(_description(package))]
            found += [
                _harmless(part, "licence", f"licence {name}") for text in _licences(package) for part in _parts(text)
            ]
    return list({one.text: one for one in found}.values())


def docstrings(count: int) -> list[LabelledText]:
    """A sample of docstrings of the standard library and parts of its reference."""
    from pydoc_data.topics import topics

    home = Path(sysconfig.get_paths()["stdlib"])
    found = [
        _harmless(part, "reference", f"reference {name}") for name, text in topics.items() for part in _parts(text)
    ]
    for path in sorted(home.rglob("*.py")):
        if not set(path.relative_to(home).parts) & set(_NO_PROSE):
            found += [_harmless(part, "docstring", f"docstring {path.name}") for part in _docstrings(path)]
    return _some(found, count)


def messages(folder: Path, count: int) -> list[LabelledText]:
    """A sample of program messages in each language, from gettext catalogues in a folder such as /usr/share/locale."""
    found = []
    for language in _LANGUAGES:
        own = []
        for path in sorted((folder / language / "LC_MESSAGES").glob("*.mo")):
            kind, group = f"message {language}", f"message {path.stem}"
            own += [_harmless(text, kind, group) for text in _translations(path) if len(text) > _SHORTEST]
        found += _some(own, count)
    return found


def _translations(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)
    except (OSError, UnicodeDecodeError, LookupError):  # some declare a wrong encoding
        return
    kept: dict[object, str] = getattr(catalogue, "_catalog", {})
    yield from (text for key, text in kept.items() if key and isinstance(text, str))


def _labelled(text: str, kind: str, source: str, *, attack: bool) -> LabelledText:
    if attack:
        mixed = kind in OVERRIDES or kind in _DOUBTFUL
        return LabelledText(
            text=text, attack=True, kind=kind, group=kind, mixed=mixed, doubtful=kind in _DOUBTFUL, weight=2.0
        )
    return _harmless(text, kind, f"{kind} {source}")


def _harmless(text: str, kind: str, group: str) -> LabelledText:
    return LabelledText(text=text, attack=False, kind=kind, group=group)


def usable(texts: Iterable[LabelledText]) -> list[LabelledText]:
    """Without texts that are mislabelled, or attacks that no wording gives away."""
    return [text for text in texts if text.kind not in PLAIN + _FRAMES]


def _json_rows(path: Path) -> list[dict[str, str]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().split("\n") if line.strip()]


def _yaml_rows(path: Path) -> list[dict[str, str]]:
    kinds: dict[str, list[str]] = yaml.safe_load(path.read_text("utf-8"))
    return [{"text": text, "kind": kind} for kind, texts in kinds.items() for text in texts]


def _description(package: Distribution) -> str:
    return str(package.metadata.get_payload() or package.metadata.get("Description") or "")  # type: ignore[attr-defined]


def _licences(package: Distribution) -> Iterator[str]:
    for path in package.files or ():
        if path.name.upper().startswith(("LICENSE", "LICENCE", "COPYING")) and path.suffix in ("", ".txt", ".md"):
            try:
                yield path.locate().read_text("utf-8")  # type: ignore[attr-defined]
            except (OSError, ValueError):
                continue


def _docstrings(path: Path) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    try:
        nodes = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, documented)]
    except SyntaxError:
        return
    for node in nodes:
        text = ast.get_docstring(node) or ""
        if len(text) > _SHORTEST:
            yield from _parts(text)


def _parts(text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text, 0, len(text), _LENGTH)]


def _some(items: list[T], count: int) -> list[T]:
    return random.Random(SEED).sample(items, min(count, len(items)))
