"""Which candidate has the greatest number."""

from ..comparing import most, two_candidates
from ..operator import Operator, candidates

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
