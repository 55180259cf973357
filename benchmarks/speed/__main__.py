"""The measurements as commands: `python -m benchmarks.speed orchestration` and `retrieval`."""

import typer

from meta_agent_rag.cli.shared.command import reporting

from .orchestration import orchestration
from .retrieval import retrieval

app = typer.Typer(
    help="Measure the package itself.", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.command()(reporting(orchestration))
app.command()(reporting(retrieval))

if __name__ == "__main__":
    app()
