"""Which candidate has the earliest date."""

from ..operator import Operator, candidates, earliest, two_candidates

OPERATOR = Operator(
    name="earliest",
    when="the candidate with the earliest date is the answer (older: born earlier)",
    combine=earliest,
    check=candidates,
    compares=True,
    examples=(
        (
            "Who is older, Ann Bode or Karl Lutz?",
            two_candidates("earliest", "Ann Bode", "Karl Lutz", "When was NAME born?"),
        ),
    ),
)
