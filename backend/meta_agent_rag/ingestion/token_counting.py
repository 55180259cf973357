"""Tokens as the encoder of a corpus counts them, from its own tokenizer.json, without loading the encoder."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ..settings import Settings

Count: TypeAlias = Callable[[str], int]
MOST_TOKENS = 512
"""No passage is longer, whatever the encoder could read: a longer one says too little about each part."""
_LIMITS = (
    ("sentence_bert_config.json", "max_seq_length"),
    ("tokenizer_config.json", "model_max_length"),
    ("config.json", "max_position_embeddings"),
)


def token_counter(folder: Path | None, prefix: str = "") -> Count:
    """Counts what the encoder in `folder` reads of a passage: `prefix`, the text, and its marks around both.

    Loads the tokenizer at the first call. Without a folder, or a tokenizer in it, words are counted.
    """
    file = folder / "tokenizer.json" if folder is not None else None
    if file is None or not file.is_file():
        return lambda text: len(text.split())
    return lambda text: len(_tokenizer(file).encode(prefix + text).ids)


def encoder_limit(folder: Path | None) -> int:
    """Tokens that the encoder in `folder` reads, at most 512; 512 where it does not say."""
    if folder is not None:
        for name, key in _LIMITS:
            limit = _number(folder / name, key)
            if limit is not None:
                return min(limit, MOST_TOKENS)
    return MOST_TOKENS


def encoder_folder(settings: "Settings", encoder_name: str) -> Path | None:
    """Where the encoder of this name lies; `None` for one without a model. May ask the hub, as opening it does."""
    if encoder_name.startswith("hash-"):
        return None
    from ..retrieval.encoders.loading import load_encoder

    folder = getattr(load_encoder(settings, encoder_name).encoder, "folder", None)
    return folder if isinstance(folder, Path) else None


def passage_prefix(folder: Path | None, encoder_name: str) -> str:
    """What the encoder puts before a passage: as its own configuration says, else the table of known encoders."""
    if folder is None:
        return ""
    from ..retrieval.encoders.prefixes import own_prompts, prefixes

    prompts = _stated(folder / "config_sentence_transformers.json").get("prompts")
    return prefixes(encoder_name, *own_prompts(prompts if isinstance(prompts, dict) else {}))[1]


@cache
def _tokenizer(file: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()  # files come with both switched on, at lengths that are not the encoder's
    tokenizer.no_padding()
    return tokenizer


def _number(file: Path, key: str) -> int | None:
    value = _stated(file).get(key)
    return int(value) if isinstance(value, int | float) and 0 < value < 1e6 else None


def _stated(file: Path) -> dict[str, Any]:
    """A configuration file's fields; none if it is not there or not one."""
    try:
        fields = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}
