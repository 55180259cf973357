"""The libraries of each extra of the package, and the message for a missing one.

`tests/house/test_extras.py` compares the table with pyproject.toml and the imports in the code.
"""

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType

from .errors import MissingExtraError

EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "bench": ("datasets", "matplotlib", "sklearn"),
        "chat": ("aiosqlite", "prompt_toolkit", "frontmatter"),
        "demo": ("gradio", "fastapi", "jinja2", "markupsafe", "uvicorn"),
        "embedded": ("xllamacpp",),
        "encoders": ("fastembed", "huggingface_hub", "loguru", "onnxruntime", "tokenizers"),
        "ingest": (
            "bs4",
            "docx",
            "frontmatter",
            "lxml",
            "openpyxl",
            "pdfplumber",
            "pptx",
            "pypdf",
            "striprtf",
        ),
        "mcp": ("mcp", "starlette", "uvicorn"),
        "ray": ("ray",),
        "servers": ("elasticsearch", "qdrant_client"),
        "service": (
            "fastapi",
            "limits",
            "prometheus_client",
            "psycopg",
            "python_multipart",
            "redis",
            "sqlalchemy",
            "starlette",
            "uvicorn",
        ),
        "telemetry": ("opentelemetry",),
        "torch": ("sentence_transformers", "torch", "transformers"),
    }
)
"""The modules that each extra provides and the code imports, by the extra's name."""


def require(extra: str, wanted: str) -> None:
    """Raise `MissingExtraError` unless the modules of an extra are installed; `wanted` is the feature that needs them.

    Imports nothing, so that a command can check before it does any work.
    """
    if not installed(extra):
        raise missing(extra, wanted)


def installed(extra: str) -> bool:
    """Whether all modules of an extra can be found."""
    return all(_found(module) for module in EXTRAS[extra])


def missing(extra: str, wanted: str) -> MissingExtraError:
    """The error with the installation command of an extra.

    >>> str(missing("demo", "`marag demo`"))
    '`marag demo` needs the extra "demo"; install it: pip install "meta-agent-rag[demo]".'
    """
    return MissingExtraError(f'{wanted} needs the extra "{extra}"; install it: pip install "meta-agent-rag[{extra}]".')


def missing_module(error: ModuleNotFoundError, wanted: str) -> MissingExtraError | None:
    """The error for a failed import of a module that an extra provides; `None` for any other module.

    `wanted` is the feature that needs the module.
    """
    name = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if name in modules), None)
    return None if extra is None else missing(extra, wanted)


def _found(module: str) -> bool:
    return (module in sys.modules and sys.modules[module] is not None) or find_spec(module) is not None
