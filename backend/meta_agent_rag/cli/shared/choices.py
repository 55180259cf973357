"""The settings as users see them: one that takes the name of an extension lists the names in its registry."""

from collections.abc import Callable, Mapping
from typing import Any

from ...agent.routes.route import discover_routes
from ...chat.memories import discover_memories
from ...discovery import Named
from ...grounding.styles import discover_styles
from ...ingestion.chunkers import discover_chunkers
from ...retrieval.stores import discover_stores
from ...settings import described as described_alone

REGISTRIES: Mapping[str, Callable[[], Mapping[str, Named]]] = {
    "ROUTES": discover_routes,
    "CITATION_STYLE": discover_styles,
    "MEMORY": discover_memories,
    "DENSE_STORE": lambda: discover_stores().dense,
    "LEXICAL_STORE": lambda: discover_stores().lexical,
    "CHUNKER": discover_chunkers,
}
"""The registry that a setting chooses from, by its name in the environment."""


def described() -> list[tuple[str, str, Any]]:
    """Every setting as (environment name, description with its choices, default).

    The choices are the built-in extensions and those of installed packages.
    """
    return [
        (name, f"{about} {_choices(REGISTRIES[name]())}" if name in REGISTRIES else about, default)
        for name, about, default in described_alone()
    ]


def _choices(members: Mapping[str, Named]) -> str:
    return f"Choices: {', '.join(_choice(members[name]) for name in sorted(members))}."


def _choice(member: Named) -> str:
    about = getattr(member, "about", "") or getattr(member, "description", "")
    return f"`{member.name}` ({about})" if about else f"`{member.name}`"
