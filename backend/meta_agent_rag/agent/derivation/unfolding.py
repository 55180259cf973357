"""Decomposes a question by its grammar alone: first a named person's relative, a work's maker or the thing that a
relative clause describes, then what is asked about it.
"""

import re

from ...grounding.answer_kind import kind_asked
from .derivation import Chain, Plan
from .look_up import names_in

_PARENTS = ("father", "mother")
_RELATIVES = (
    r"(?:(?:paternal|maternal)\s+)?grand(?:father|mother)|(?:child|son|daughter|father|mother)-in-law"
    r"|father|mother|wife|husband|spouse|son|daughter|child|brother|sister"
)
_MAKERS = (
    r"director|composer|performer|singer|author|writer|screenwriter|lyricist|producer|creator|founder|inventor|architect"
    r"|designer|developer|publisher|editor|discoverer|owner|president|leader|conductor|painter|sculptor"
)
_WORKS = r"film|movie|song|single|album|book|novel|play|poem|opera|painting|series|show|game|company|band|magazine"
_RUN_ON = re.compile(r"(?:\s[a-z]+){3}")
"""A run of lower-case words, which belong to no name and leave its end uncertain."""
_NESTED = re.compile(r",|\b(?:whose|that|who|which|where|when)\b", re.IGNORECASE)
_NAMED = re.compile(
    r"(?:who|what|which(?:\s\w+)?)\s(?:is|was|are|were)\s(?:the\s(?:name|title)\sof\s)?#(?:\s(?:called|named|titled))?\W*",
    re.IGNORECASE,
)
_POSSESSIVE = re.compile(
    rf"^(?P<before>\S+\s.*?)\b(?P<owner>[A-Z0-9][^?]*?)(?:['\u2019]s|s['\u2019])\s+(?P<relative>{_RELATIVES})\b(?!-)"
    r"(?P<after>.*)$"
)
_OF = re.compile(
    rf"^(?P<before>\S+\s.*?)\bthe\s+(?P<relative>{_RELATIVES}|{_MAKERS})\s+of\s+"
    rf"(?P<owner>(?:(?:the\s+)?(?:{_WORKS})\s+)?[A-Z0-9](?:[^?]*\s[A-Z0-9(\"']|)[^?\s]*?)"
    r"(?P<after>(?:\s*['\u2019]s)?(?:\s+[a-z]+){0,4}\s*\?)\s*$"
)

_CLAUSE = re.compile(
    r"^(?P<before>[^.]+)\s(?:the|an?)\s+(?:same\s+)?"
    r"(?P<noun>(?:(?!(?:of|in|on|at|by|from|to|for|with)\s)[\w\u2019'-]+\s+){0,3}?[a-z-]+\s+)"
    r"(?P<link>who|whom|whose|that|(?:(?:in|from|at|by)\s+)?which|where)\s+(?P<clause>[^?]+)\?\s*$",
    re.IGNORECASE,
)
_ASKING = frozenset({"what", "which", "who", "whom", "whose", "that", "where", "when", "why", "how"})
_AUXILIARIES = frozenset(
    {"is", "are", "was", "were", "did", "does", "do", "has", "have", "had", "and", "or", "than", "as"}
)
_SUBJECT = re.compile(r"\b(?:did|does|do)\s+(?:the|an?)\s+\S+(?:\s+\S+)?\s+of$", re.IGNORECASE)
_STATE = re.compile(
    r"^(?:when|where|how|(?:in|on|at)\s.*)\s(?:is|are|was|were)\s+(?:the|an?)\s+\S+(?:\s+\S+)?\s+of$", re.IGNORECASE
)
"""The beginning of a question whose participle may come after the clause."""
_UNCLEAR = re.compile(r",|\b(?:what|which|who|whom|whose|that|where|when)\b", re.IGNORECASE)
"""Words of a clause within the clause, or of a question that comes late."""
PERSON = rf"person|man|woman|actor|actress|{_RELATIVES}|{_MAKERS}"
"""A pattern of nouns for people."""


def is_open(question: str) -> bool:
    """Whether a question offers no choice and asks for no yes or no, so that it may describe something."""
    return kind_asked(question) not in ("verdict", "choice")


def asks_for_name(fact: str) -> bool:
    """Whether a fact asks only what `#` is called: the fact before is then all that is asked.

    >>> asks_for_name("What is the title of #?"), asks_for_name("What is the capital of #?")
    (True, False)
    """
    return bool(_NAMED.fullmatch(fact.strip()))


def unfolded(question: str) -> Plan | None:
    """The plan of a question about a relative, a maker, or a thing that a relative clause describes; else `None`.

    >>> unfolded("Where did Otto Lind's wife study?").chains[0].facts
    ('Who is the wife of Otto Lind?', 'Where did # study?')
    >>> unfolded("Who is Otto Lind's paternal grandmother?").chains[0].facts
    ('Who is the father of Otto Lind?', 'Who is the mother of #?')
    >>> unfolded("Who founded the company that published Salt Road?").chains[0].facts
    ('What is the company that published Salt Road?', 'Who founded #?')
    """
    asked = question.strip()
    if not is_open(asked):
        return None
    facts = _about_an_owner(asked, within_clause=False) or _about_a_clause(asked)
    return Plan(operator="last", chains=(Chain(of="", facts=facts),)) if len(facts) > 1 else None


def _about_an_owner(asked: str, *, within_clause: bool) -> tuple[str, ...]:
    """The facts of a question about a named person's relative or a named work's maker."""
    possessive = _POSSESSIVE.match(asked)
    found = possessive or _OF.match(asked)
    if found is None or _RUN_ON.search(found["owner"]) or (possessive and _has_verb(found["owner"])):
        return ()
    if not within_clause and _NESTED.search(found["before"].partition(" ")[2]):
        return ()
    hops = _hops(found["relative"].lower(), found["owner"].strip())
    rest = f"{found['before']}#{found['after']}"
    return hops if asks_for_name(rest) else (*hops, rest)


def _about_a_clause(asked: str) -> tuple[str, ...]:
    """The facts of a question that ends in a relative clause: what the clause describes, then what is asked about it.

    The end of the clause is certain only at the end of a question.
    """
    found = _CLAUSE.match(asked)
    if found is None or _UNCLEAR.search(found["clause"]) or not names_in(found["clause"]):
        return ()
    before = re.findall(r"[a-z]+", found["before"].lower())
    if sum(word in _ASKING for word in before) != 1:
        return ()  # a clause within a clause
    in_state = _STATE.match(found["before"]) and found["clause"].split()[-1].islower()
    if before[-1] in _AUXILIARIES or _SUBJECT.search(found["before"]) or in_state:
        return ()  # the main verb follows, at an unknown place
    person = found["link"].lower() in {"who", "whom"} or bool(re.fullmatch(PERSON, found["noun"].split()[-1].lower()))
    inner = f"{'Who' if person else 'What'} is the {found['noun'].strip()} {found['link']} {found['clause'].strip()}?"
    hops, rest = _about_an_owner(inner, within_clause=True) or (inner,), f"{found['before'].strip()} #?"
    return hops if asks_for_name(rest) else (*hops, rest)


def _has_verb(owner: str) -> bool:
    """Whether there may be a verb between names: "Elizabeth I imprison James VI"."""
    apart = names_in(owner)
    return len(apart) > 1 and re.search(r"\s[a-z]{3}", owner.partition(apart[0])[2].partition(apart[-1])[0]) is not None


def _hops(relative: str, owner: str) -> tuple[str, ...]:
    """The facts that lead from a person to a relative, one hop each."""
    side, _, grand = relative.rpartition(" ")
    if grand.startswith("grand"):
        if not side:
            return (f"Who is the {relative} of {owner}?",)
        parent = "father" if side == "paternal" else "mother"
        return (f"Who is the {parent} of {owner}?", f"Who is the {grand.removeprefix('grand')} of #?")
    kin, in_law, _ = relative.partition("-in-law")
    if not in_law:
        return (f"Who is the {relative} of {owner}?",)
    if kin in _PARENTS:
        return (f"Who is the husband or wife of {owner}?", f"Who is the {kin} of #?")
    child = {"son": "daughter", "daughter": "son"}.get(kin, "child")
    return (f"Who is the {child} of {owner}?", "Who is the husband or wife of #?")
