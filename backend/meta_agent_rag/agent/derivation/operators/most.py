"""Which candidate has the greatest number."""

from ..operator import Operator, candidates, most, two_candidates

OPERATOR = Operator(
    name="most",
    when="the candidate with the greatest number is the answer",
    combine=most,
    check=candidates,
    compares=True,
    examples=(
        (
            "Which has more floors, Alder Tower or Quay House?",
            two_candidates("most", "Alder Tower", "Quay House", "How many floors does NAME have?"),
        ),
    ),
)
