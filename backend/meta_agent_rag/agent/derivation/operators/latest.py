"""Which candidate has the latest date."""

from ..operator import Operator, candidates, latest, two_candidates

OPERATOR = Operator(
    name="latest",
    when="the candidate with the latest date is the answer (younger: born later)",
    combine=latest,
    check=candidates,
    compares=True,
    examples=(
        (
            "Which film has the director who died later, Blue Hill or Night Train (1950 Film)?",
            two_candidates(
                "latest", "Blue Hill", "Night Train (1950 Film)", "Who directed the film NAME?", "When did # die?"
            ),
        ),
        (
            "Which film whose director is younger, Grey Water or The Orchard?",
            two_candidates("latest", "Grey Water", "The Orchard", "Who directed the film NAME?", "When was # born?"),
        ),
    ),
)
