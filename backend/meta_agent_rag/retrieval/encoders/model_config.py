"""The configuration of a sentence-transformers model on disk, read without loading the model."""

import json
from pathlib import Path
from typing import Any

_UNCHANGING = {"Normalize", "Dropout", "LayerNorm"}
_POOLINGS = "pooling_mode_"


def module_folders(folder: Path) -> list[tuple[str, Path]]:
    """(kind, folder) of the model's modules in order, for instance `("Pooling", .../1_Pooling)`.

    Raises `OSError`, `ValueError` or `KeyError` if `modules.json` is missing or invalid.
    """
    return [(str(row["type"]).rpartition(".")[2], folder / str(row["path"])) for row in _json(folder / "modules.json")]


def stated_dimension(folder: Path) -> int | None:
    """The length of the vectors as stated in the configuration; `None` if missing or unclear."""
    try:
        dimension = _through_modules(folder)
        own = folder / "config_sentence_transformers.json"
        cut = _json(own).get("truncate_dim") if own.is_file() else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return min(dimension, int(cut)) if dimension and cut else dimension


def _through_modules(folder: Path) -> int | None:
    dimension: int | None = None
    for kind, place in module_folders(folder):
        if kind == "Transformer":
            dimension = int(_json(place / "config.json")["hidden_size"])
        elif kind == "Pooling":
            dimension = _pooled(_json(place / "config.json"))
        elif kind == "Dense":
            dimension = int(_json(place / "config.json")["out_features"])
        elif kind not in _UNCHANGING:
            return None
    return dimension


def _pooled(config: dict[str, Any]) -> int:
    """The number of poolings, which are concatenated in a vector; older files have a flag for each."""
    width = int(
        config["embedding_dimension"] if "embedding_dimension" in config else config["word_embedding_dimension"]
    )
    modes = config.get("pooling_mode")
    if modes is None:
        flags = [bool(value) for key, value in config.items() if key.startswith(_POOLINGS)]
        return width * max(1, sum(flags))
    return width * (1 if isinstance(modes, str) else len(modes))


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
