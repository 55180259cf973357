"""Writes what the documents derive from the code: `python docs/generate.py` (`--check` only compares)."""

import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import typer
from packaging.markers import Marker
from typer.core import TyperGroup

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.deficits.deficit import as_markdown
from meta_agent_rag.agent.derivation.operator import discover_operators
from meta_agent_rag.agent.graph import build_graph
from meta_agent_rag.agent.routes import Ballot
from meta_agent_rag.agent.routes.route import discover_routes
from meta_agent_rag.agent.state import StopReason
from meta_agent_rag.agent.voting import OPEN, STANDS
from meta_agent_rag.cli.config import env_example
from meta_agent_rag.cli.main import app
from meta_agent_rag.datasets import Dataset, discover
from meta_agent_rag.demo.vocabulary import STOP_REASONS
from meta_agent_rag.settings import Settings, described

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # a script's own folder is on the path, the repository is not
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def blocks() -> dict[str, str]:
    """Generated blocks by name: a document holds one between `<!-- NAME -->` and `<!-- /NAME -->`."""
    drawing = build_graph().get_graph().draw_mermaid().strip()
    return {
        "graph": f"```mermaid\n{drawing}\n```",
        "deficits": as_markdown(discover_deficits()),
        "methods": methods_table(),
        "operators": operators_list(),
        "routes": routes_list(),
        "weights": weights_list(),
        "stop_reasons": stop_reasons_list(),
        "datasets": datasets_table(),
        "extras": extras_table(),
    }


def methods_table() -> str:
    """A row for each method of the benchmark, those that run the loop first."""
    from benchmarks.methods import discover_methods

    methods = sorted(discover_methods().values(), key=lambda method: (not method.loop, method.name))
    rows = [f"| `{method.name}` | {method.about} | {method.departures} |" for method in methods]
    return "\n".join(["| name | what it does | departures from its paper |", "|---|---|---|", *rows])


def operators_list() -> str:
    """A line for each operator of the derivation."""
    return "\n".join(f"- `{operator.name}`: {operator.when}" for operator in discover_operators().values())


def routes_list() -> str:
    """A line for each route that can vote."""
    return "\n".join(f"- `{route.name}`: {route.about}" for route in discover_routes().values())


def weights_list() -> str:
    """What each ballot weighs in the vote."""
    ballots = {"a draft": Ballot(route="", short_answer="").weight}
    ballots |= {f"`{route.name}`": route.weight for route in discover_routes().values()}
    ballots |= {"the derivation, every fact supported by a passage": STANDS, "the derivation otherwise": OPEN}
    by_weight: dict[float, list[str]] = {}
    for ballot, weight in ballots.items():
        by_weight.setdefault(weight, []).append(ballot)
    return "\n".join(f"- {weight:g}: {', '.join(names)}" for weight, names in by_weight.items())


def stop_reasons_list() -> str:
    """A line for each reason why the loop ends."""
    return "\n".join(f"- `{reason}`: {STOP_REASONS[reason]}" for reason in get_args(StopReason))


def datasets_table() -> str:
    """A row for each data set: where its rows come from."""
    rows = [f"| `{dataset.name}` | {_source(dataset)} | {dataset.data_file} |" for dataset in discover().values()]
    return "\n".join(["| name | from the hub | or `--data-file` |", "|---|---|---|", *rows])


_ADDS = {
    "": "the loop, `marag ask`, `marag ask --grounded`, `marag tour`, the benchmark, the Python interface",
    "encoders": "the packaged encoder, and encoders of the hub on onnxruntime",
    "embedded": "a small language model on this machine; includes `encoders`",
    "ingest": "`marag ingest`: PDF, office formats, EPUB, HTML and Markdown",
    "chat": "`marag chat`, with the coach",
    "demo": "`marag demo`; includes `chat` and `ingest`",
    "service": "`marag serve`, `marag keys` and `marag audit`; includes `chat` and `ingest`",
    "mcp": "`marag mcp`; includes `service`",
    "servers": "Qdrant and Elasticsearch as stores",
    "telemetry": "Traces to an OpenTelemetry collector",
    "bench": "the benchmark's plots, calibration, and data sets of the hub",
    "ray": "benchmark runs, and encoding documents, on a Ray cluster (`--engine ray`)",
    "torch": "encoders that need PyTorch, or a GPU; on Linux with CUDA libraries",
    "all": "all of these",
}
_LINUX = {
    "python_full_version": "3.11.9",
    "python_version": "3.11",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "implementation_name": "cpython",
    "os_name": "posix",
}
_FITTING = re.compile(
    r"-(cp311-cp311|cp3\d+-abi3|py3|py2\.py3|cp\d+\.[\w.]+-\w+)-\S*(manylinux\S*x86_64|linux_x86_64|any)"
)


def extras_table() -> str:
    """A row for each extra: what it adds, and the size of what `pip` downloads for it besides the core."""
    core = _downloads("")
    rows = []
    for extra, adds in _ADDS.items():
        more = {name: size for name, size in _downloads(extra).items() if name not in core} if extra else core
        rows.append(f"| {f'`{extra}`' if extra else 'the core'} | {adds} | {_megabytes(sum(more.values()))} |")
    return "\n".join(["| extra | adds | download |", "|---|---|---|", *rows])


def _megabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6))} MB"


def _downloads(extra: str) -> dict[str, int]:
    """The size of each package that an extra brings on Linux with Python 3.11, from uv.lock."""
    packages: dict[str, list[dict[str, Any]]] = {}
    for package in tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]:
        packages.setdefault(package["name"], []).append(package)
    found: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    open_ = [("meta-agent-rag", ""), ("meta-agent-rag", extra)]
    while open_:
        name, part = one = open_.pop()
        if one in seen:
            continue
        seen.add(one)
        for package in packages[name]:
            if name != "meta-agent-rag":
                found[name] = _size(package)
            needed = package.get("optional-dependencies", {}).get(part, []) if part else package.get("dependencies", [])
            for need in needed:
                if "marker" not in need or Marker(need["marker"]).evaluate(_LINUX):
                    open_ += [(need["name"], more) for more in ("", *need.get("extra", ()))]
    return found


def _size(package: dict[str, Any]) -> int:
    wheels = [wheel for wheel in package.get("wheels", []) if _FITTING.search(wheel["url"].rpartition("/")[2])]
    return int((wheels or [package.get("sdist", {})])[0].get("size", 0))


def _source(dataset: Dataset) -> str:
    if dataset.hub is None:
        return "included in the package"
    repository, *rest = (part for part in dataset.hub if part)
    return ", ".join((f"`{repository}`", *rest))


def settings_page() -> str:
    """Every setting with its default, as `.env.example` has them."""
    about = "`NAME=default`: meaning. How they are given: [installation.md](../installation.md#settings)."
    rows = [f"- `{name}{_default(default)}`: {_plain(meaning)}" for name, meaning, default in described()]
    return "\n".join(["# Settings", "", _GENERATED, about, "", *rows, ""])


def _default(default: object) -> str:
    return "" if default in (None, "", {}, ()) else f"={default}"


_SHARED_OPTIONS = {"--set", "--json", "--debug", "--yes", "--help"}


def commands_page() -> str:
    """Every command of `marag` with its arguments and options, as `--help` has them."""
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    about = (
        "Most commands also take `--set NAME=VALUE` (any setting), `--json` (print one JSON object) and `--debug` "
        "(show the traceback of an error); some take `--yes` (do it without asking)."
    )
    parts = [part for name, command in sorted(root.commands.items()) for part in _command(f"marag {name}", command)]
    return "\n".join(["# Commands", "", _GENERATED, about, "", *parts])


def _command(name: str, command: Any) -> Iterator[str]:
    yield from (f"## {name}", "", _joined(command.help), "")
    if isinstance(command, TyperGroup):
        for own, child in sorted(command.commands.items()):
            yield from (line.replace("## ", "### ", 1) for line in _command(f"{name} {own}", child))
        return
    yield from ([*rows, ""] if (rows := _options(command)) else [])


def _options(command: Any) -> list[str]:
    return [
        f"- `{', '.join(one.opts) if one.param_type_name == 'option' else one.name.upper()}`: "
        f"{_joined(getattr(one, 'help', ''))}"
        for one in command.params
        if not _SHARED_OPTIONS.intersection(one.opts)
    ]


_ERRORS = {"ErrorEnvelope", "FaultEnvelope", "HTTPValidationError", "ValidationError"}


def http_page() -> str:
    """Every path of the service and every body, as its OpenAPI document has them."""
    from meta_agent_rag.service.app import create_app
    from meta_agent_rag.service.resources import open_service

    found = create_app(lambda: open_service(Settings.load(), [])).openapi()
    parts = [
        part
        for path, methods in sorted(found["paths"].items())
        for method, about in methods.items()
        for part in _operation(f"{method.upper()} {path}", about)
    ]
    about = (
        "Keys, limits and errors: [service.md](../service.md). Below the paths are the fields of bodies that need an "
        "explanation (`*`: required); `GET /openapi.json` has all, with their types."
    )
    return "\n".join(["# HTTP", "", _GENERATED, about, "", *parts, "## Bodies", "", *_bodies(found)])


def _operation(name: str, about: dict[str, Any]) -> Iterator[str]:
    body = [_schema(one) for one in about.get("requestBody", {}).get("content", {}).values()]
    done = [
        _schema(content)
        for status, reply in sorted(about.get("responses", {}).items())
        if status.startswith("2")
        for content in reply.get("content", {}).values()
        if _schema(content)
    ]
    flow = "".join(f" {word} `{', '.join(side)}`." for word, side in (("Takes", body), ("Returns", done)) if any(side))
    yield from (f"## {name}", "", _joined(about.get("description") or about.get("summary")) + flow, "")
    rows = [
        f"- `{one['name']}` ({one['in']}): {_joined(meaning)}"
        for one in about.get("parameters", ())
        if (meaning := one.get("description", one.get("schema", {}).get("description", "")))
    ]
    yield from ([*rows, ""] if rows else [])


def _bodies(found: dict[str, Any]) -> Iterator[str]:
    """The fields of every body."""
    seen: set[tuple[str, str]] = set()
    for name, about in sorted(found["components"]["schemas"].items()):
        if name in _ERRORS:
            continue
        required = about.get("required", ())
        rows = []
        for field, one in about.get("properties", {}).items():
            meaning = _joined(one.get("description"))
            if meaning not in ("", "Without effect.") and (field, meaning) not in seen:
                rows.append(f"- `{field}`{'*' if field in required else ''}: {meaning}")
            seen.add((field, meaning))
        yield from ([f"### {name}", "", _joined(about.get("description")), "", *rows, ""] if rows else [])


def _schema(content: dict[str, Any]) -> str:
    return str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]


def _joined(text: str | None) -> str:
    return _plain(" ".join((text or "").split()))


def python_page() -> str:
    """Every public name of the package, with its signature and docstring, and the methods of `Engine`."""
    import meta_agent_rag

    parts = [part for name in meta_agent_rag.__all__ for part in _public(name, getattr(meta_agent_rag, name))]
    return "\n".join(["# Python", "", _GENERATED, "", "How to use them: [python.md](../python.md).", "", *parts])


def _public(name: str, value: Any) -> Iterator[str]:
    signature = "" if inspect.isclass(value) and issubclass(value, Exception | Settings) else _signature(value)
    yield from (f"## {name}", "")
    yield from ([f"`{name}{signature}`", ""] if signature else [])
    yield from (_plain(inspect.getdoc(value) or "").split("\n\n>>>")[0], "")
    for own, member in vars(value).items() if name == "Engine" else ():
        if not own.startswith("_") and inspect.isfunction(member) and own not in getattr(value, "__annotations__", ()):
            yield from (
                f"### {name}.{own}",
                "",
                f"`{own}{_signature(member)}`",
                "",
                _plain(inspect.getdoc(member) or ""),
                "",
            )


def _signature(value: Any) -> str:
    """The parameters' names: types are in the code, and would be spelt differently by Python's versions."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    names = [
        one.name if one.default is inspect.Parameter.empty else f"{one.name}=..." for one in found.parameters.values()
    ]
    return f"({', '.join(names)})"


def decisions_page() -> str:
    """Every decision by its title."""
    titles = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in DECISIONS}
    rows = [f"- [{title.removeprefix('# ')}]({name})" for name, title in titles.items()]
    return "\n".join(["# Decisions", "", "Design decisions, with the measurements behind them.", "", *rows, ""])


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


_GENERATED = "Written by `uv run python docs/generate.py`."


def generated() -> dict[Path, str]:
    """Every file that is generated or holds a generated block, as it should be."""
    files = {
        ROOT / ".env.example": env_example(),
        ROOT / "docs" / "reference" / "settings.md": settings_page(),
        ROOT / "docs" / "reference" / "commands.md": commands_page(),
        ROOT / "docs" / "reference" / "http.md": http_page(),
        ROOT / "docs" / "reference" / "python.md": python_page(),
        ROOT / "docs" / "decisions" / "index.md": decisions_page(),
    }
    made = blocks()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for name, block in made.items():
            pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
            text = pattern.sub(lambda match, block=block: f"{match[1]}{block}\n{match[2]}", text)  # type: ignore[misc]
        files[path] = text
    return files


def main(arguments: list[str]) -> int:
    """Write the files, or, with `--check`, name those that differ."""
    stale = {
        path: text
        for path, text in generated().items()
        if path.is_file() is False or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        sys.stdout.write(f"{'stale' if '--check' in arguments else 'written'}: {path.relative_to(ROOT)}\n")
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
