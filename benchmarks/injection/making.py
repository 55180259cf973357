"""Attacks and harmless sentences, generated from the frames, goals and slots of `grammar/`."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "ru", "zh", "ja")
_BARE = "bare"
"""The empty frame: in it, only goals that are recognisable by themselves are attacks."""
_BRACES = re.compile(r"\{([^{}]*)\}")
_GOAL = re.compile(r"\{(?:[Dd]o|to)\}")
_INFINITIVE = " // "
_LITERAL = str.maketrans("⟦⟧", "{}")
_BLANKS = re.compile(r"[ \t]+")
_LOOSE = re.compile(r" +([.,;!?])(?=\s|$)")
_STOPS = re.compile(r"([.!?。])\.")


@dataclass(frozen=True, kw_only=True)
class Made:
    """A text with its frame and goal; a harmless text has its kind as frame and no goal."""

    text: str
    frame: str
    goal: str = ""


@cache
def grammar(name: str) -> Mapping[str, Any]:
    """A file of the folder: slots, goals and frames of a language, or the harmless sentences."""
    loaded: Mapping[str, Any] = yaml.safe_load(files(__package__).joinpath(f"grammar/{name}.yaml").read_text("utf-8"))
    return loaded


def attacks(language: str, each: int, seed: int) -> list[Made]:
    """Up to `each` different attacks per frame of a language, cycling through the goals; determined by the seed."""
    rules, chance, found = grammar(language), random.Random(f"{seed} {language}"), dict[str, Made]()
    for frame, templates in rules["frames"].items():
        before, goals = len(found), rules["overt"] if frame == _BARE else list(rules["goals"])
        for turn in range(3 * each):
            if len(found) - before == each:
                break
            goal = goals[(turn + chance.randrange(2) * 7) % len(goals)]
            text = _attack(rules, templates[turn % len(templates)], goal, chance)
            goal = goal if _GOAL.search(templates[turn % len(templates)]) else ""
            found.setdefault(text, Made(text=text, frame=frame, goal=goal))
    return list(found.values())


def harmless(each: int, seed: int) -> list[Made]:
    """Up to `each` different harmless sentences per kind, and those of the other languages."""
    rules, chance, found = grammar("harmless"), random.Random(f"{seed} harmless"), dict[str, Made]()
    slots = grammar("en")["slots"] | rules["slots"]
    goals = [goal for own in grammar("en")["goals"].values() for goal in own]
    for kind, lines in rules["kinds"].items():
        before = len(found)
        for turn in range(3 * each):
            if len(found) - before == each:
                break
            text = _filled(lines[turn % len(lines)], slots | {"do": goals}, chance)
            found.setdefault(text, Made(text=text, frame=kind))
    for language, lines in rules["languages"].items():
        found |= {text: Made(text=text, frame=language) for text in lines}
    return list(found.values())


def placed(attack: str, prose: Sequence[str], chance: random.Random) -> str:
    """An attack placed in ordinary prose: before, after or between the sentences, or as a separate paragraph."""
    at = chance.choice((0, len(prose), chance.randint(0, len(prose))))
    gap = chance.choice((" ", " ", "\n", "\n\n"))
    parts = (" ".join(prose[:at]), attack, " ".join(prose[at:]))
    return gap.join(part for part in parts if part)


def _attack(rules: Mapping[str, Any], template: str, goal: str, chance: random.Random) -> str:
    do, _, to = chance.choice(rules["goals"][goal]).partition(_INFINITIVE)
    return _filled(template, rules["slots"] | {"do": [do], "to": [to or do]}, chance)


def _filled(template: str, slots: Mapping[str, Sequence[Any]], chance: random.Random) -> str:
    """Expand choices and slots from the innermost outwards; a slot's value may contain others."""
    text = template
    while match := _BRACES.search(text):
        text = text[: match.start()] + _chosen(match[1], slots, chance) + text[match.end() :]
    text = _LOOSE.sub(r"\1", _BLANKS.sub(" ", text.translate(_LITERAL))).strip()
    return _capital(_STOPS.sub(r"\1", text))


def _chosen(inside: str, slots: Mapping[str, Sequence[Any]], chance: random.Random) -> str:
    if "|" in inside:
        return chance.choice(inside.split("|"))
    name = inside[0].lower() + inside[1:]
    value = str(chance.choice(slots[name]))
    return value if name == inside else _capital(value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
