"""Attacks and harmless sentences, made from the slots of `phrases.yaml`."""

import random
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Literal

import yaml

_SLOT = re.compile(r"\{(\w+)\}")


def made(kind: Literal["attacks", "harmless"], count: int, seed: int) -> list[str]:
    """So many different sentences, the same for the same seed."""
    data = yaml.safe_load(files(__package__).joinpath("phrases.yaml").read_text("utf-8"))
    chance, found = random.Random(seed), dict[str, None]()
    frames: Sequence[str] = data[kind]
    for turn in range(20 * count):
        if len(found) == count:
            break
        text = re.sub(r"\s+", " ", _filled(frames[turn % len(frames)], data["slots"], chance)).strip()
        text = re.sub(r" ([.,;:])", r"\1", text)
        found[text[0].upper() + text[1:]] = None
    return list(found)


def _filled(frame: str, slots: Mapping[str, Sequence[str]], chance: random.Random) -> str:
    return _SLOT.sub(lambda slot: _filled(str(chance.choice(slots[slot[1]])), slots, chance), frame)
