"""Writes what the documents derive from the code: `python docs/generate.py` (`--check` only compares)."""

import re
import sys
from pathlib import Path

from meta_agent_rag.agent.deficits import discover_deficits
from meta_agent_rag.agent.deficits.table import as_markdown
from meta_agent_rag.agent.graph import build_graph
from meta_agent_rag.env_example import env_example

ROOT = Path(__file__).parents[1]


def blocks() -> dict[str, str]:
    """Generated blocks by name: a document holds one between `<!-- NAME -->` and `<!-- /NAME -->`."""
    drawing = build_graph().get_graph().draw_mermaid().strip()
    return {
        "graph": f"```mermaid\n{drawing}\n```",
        "deficits": as_markdown(discover_deficits()),
        "methods": methods_table(),
    }


def methods_table() -> str:
    """A row for each method of the benchmark, those that run the loop first."""
    sys.path.insert(0, str(ROOT))  # a script's own folder is on the path, the repository is not
    from benchmarks.methods import discover_methods

    methods = sorted(discover_methods().values(), key=lambda method: (not method.loop, method.name))
    rows = [f"| `{method.name}` | {method.about} | {method.departures} |" for method in methods]
    return "\n".join(["| name | what it does | departures from its paper |", "|---|---|---|", *rows])


def generated() -> dict[Path, str]:
    """Every file that is generated or holds a generated block, as it should be."""
    files = {ROOT / ".env.example": env_example()}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for name, block in blocks().items():
            pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
            text = pattern.sub(lambda match, block=block: f"{match[1]}{block}\n{match[2]}", text)  # type: ignore[misc]
        files[path] = text
    return files


def main(arguments: list[str]) -> int:
    """Write the files, or, with `--check`, name those that differ."""
    stale = {path: text for path, text in generated().items() if path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        sys.stdout.write(f"{'stale' if '--check' in arguments else 'written'}: {path.relative_to(ROOT)}\n")
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
