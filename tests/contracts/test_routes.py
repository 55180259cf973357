"""The contract of every discovered route."""

from pathlib import Path

import pytest

from meta_agent_rag.agent.routes.route import Route, discover_routes
from meta_agent_rag.agent.voting import voters
from meta_agent_rag.errors import ExtensionError, ModelError
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import Scripted
from tests.loop import QUESTION, ask, draft

ROUTES = discover_routes()
USELESS = {"chains": [{"of": "", "facts": [QUESTION]}], "operator": "last"}


def test_routes_are_discovered() -> None:
    assert ROUTES
    assert set(voters(Settings.load())) <= set(ROUTES)


@pytest.mark.parametrize("route", ROUTES.values(), ids=lambda route: route.name)
class TestEveryRoute:
    """The contract of a single route."""

    def test_it_has_a_description_and_a_weight(self, route: Route) -> None:
        assert route.about.strip(), "describe in `about`, in one clause, how the route comes to its answer"
        assert route.weight > 0, "give the route a `weight` above 0"

    @pytest.mark.slow
    async def test_its_answer_is_a_vote(self, route: Route, tmp_path: Path) -> None:
        said = {"steps": ["So."], "rationale": "So.", "answer": "It is Oslo.", "short_answer": "Oslo"}
        script = {"write": draft("Paris"), "plan": USELESS, "route": said}
        run = await ask(tmp_path, script, "MONITOR_POLICY=vote", f"ROUTES={route.name}")
        vote = run.answer.rounds[0].vote
        assert vote is not None, "raise only errors that must stop the run"
        by_route = {ballot.route: ballot.short_answer for ballot in vote.ballots}
        assert by_route[route.name] in ("Oslo", ""), "return the model's short_answer unchanged, or an empty one"
        asked = bool(run.model.asked("route"))
        assert bool(by_route[route.name]) == asked, "call the model in the stage `route`, or answer with an empty text"

    async def test_a_failed_call_has_no_vote(self, route: Route, tmp_path: Path) -> None:
        script: dict[str, Scripted] = {
            "write": draft("Paris"),
            "plan": USELESS,
            "route": ModelError("The server is down; try again."),
        }
        run = await ask(tmp_path, script, "MONITOR_POLICY=vote", f"ROUTES={route.name}")
        assert run.answer.short_answer, "turn a failed call into the `error` of the answer, as `asked` does"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("async def run(context, given):\n    return 'Oslo'\n", r"TypeError: it returned str, not a RouteAnswer"),
        ("def run(context, given):\n    return 'Oslo'\n", r"TypeError: .*str.*await"),
        (
            "async def run(context, given):\n    return RouteAnswer(route='other', short_answer='Oslo')\n",
            "ValueError: it returned an answer of the route 'other'",
        ),
    ],
    ids=["another type", "not a coroutine", "another route"],
)
async def test_a_wrong_result_is_named_with_the_file(source: str, said: str, tmp_path: Path) -> None:
    routes = "from meta_agent_rag.agent.routes"
    head = f"{routes}.vote import RouteAnswer\n{routes}.route import Route\n"
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.py").write_text(f"{head}{source}ROUTE = Route(name='mine', about='says it at once', run=run)\n")
    script = {"write": draft("Paris"), "plan": USELESS}
    with pytest.raises(ExtensionError, match=rf"The route 'mine' failed in '.*mine\.py', line \d \({said}"):
        await ask(tmp_path, script, "MONITOR_POLICY=vote", "ROUTES=mine", f"ROUTES_DIR={own}")
