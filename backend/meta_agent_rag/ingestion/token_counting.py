"""Counts tokens like the encoder of a corpus, from its own tokenizer.json, without loading the encoder."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ..settings import Settings

Count: TypeAlias = Callable[[str], int]
MOST_TOKENS = 512
"""The longest passage, even if the encoder could read more: a longer one says too little about each part."""
_LIMITS = (
    ("sentence_bert_config.json", "max_seq_length"),
    ("tokenizer_config.json", "model_max_length"),
    ("config.json", "max_position_embeddings"),
)


def token_counter(folder: Path | None, prefix: str = "") -> Count:
    """Counts the tokens that the encoder in `folder` reads for a passage: `prefix`, the text, and special tokens.

    Loads the tokenizer on the first call. Without a folder, or a tokenizer in it, words are counted.
    """
    file = folder / "tokenizer.json" if folder is not None else None
    if file is None or not file.is_file():
        return lambda text: len(text.split())
    return lambda text: len(_tokenizer(file).encode(prefix + text).ids)


def encoder_limit(folder: Path | None) -> int:
    """The most tokens that the encoder in `folder` reads, up to 512; 512 if unknown."""
    if folder is not None:
        for name, key in _LIMITS:
            limit = _number(folder / name, key)
            if limit is not None:
                return min(limit, MOST_TOKENS)
    return MOST_TOKENS


def encoder_folder(settings: "Settings", encoder_name: str) -> Path | None:
    """The folder of the encoder with this name; `None` for one without a model. May contact the hub."""
    if encoder_name.startswith("hash-"):
        return None
    from ..retrieval.encoders.loading import load_encoder

    folder = getattr(load_encoder(settings, encoder_name).encoder, "folder", None)
    return folder if isinstance(folder, Path) else None


def passage_prefix(folder: Path | None, encoder_name: str) -> str:
    """The encoder's prefix for passages, from its own configuration, else from the table of known encoders."""
    if folder is None:
        return ""
    from ..retrieval.encoders.loading import table_prefixes

    prompts = _stated(folder / "config_sentence_transformers.json").get("prompts")
    own = prompts.get("passage") or prompts.get("document") if isinstance(prompts, dict) else None
    return own or table_prefixes(encoder_name)[1]


@cache
def _tokenizer(file: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()  # files have both enabled, with lengths that are not the encoder's
    tokenizer.no_padding()
    return tokenizer


def _number(file: Path, key: str) -> int | None:
    value = _stated(file).get(key)
    return int(value) if isinstance(value, int | float) and 0 < value < 1e6 else None


def _stated(file: Path) -> dict[str, Any]:
    """The fields of a configuration file; empty if it is missing or invalid."""
    try:
        fields = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}
