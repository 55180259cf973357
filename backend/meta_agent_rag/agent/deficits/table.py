"""The table of deficits for the documentation, generated from the registry."""

from .registry import DeficitRegistry


def as_markdown(deficits: DeficitRegistry) -> str:
    """A Markdown table with one row per deficit."""
    rows = ["| deficit | when | repair | answer mode | retrieves |", "|---|---|---|---|---|"]
    rows += [
        f"| `{deficit.name}` | {deficit.when} | {deficit.directive} | `{deficit.answer_mode}` | "
        f"{'yes' if deficit.retrieves else 'no'} |"
        for deficit in deficits
    ]
    return "\n".join(rows)
