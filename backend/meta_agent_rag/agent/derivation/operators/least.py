"""Which candidate has the smallest number."""

from ..operator import Operator, candidates, least

OPERATOR = Operator(
    name="least",
    when="the candidate with the smallest number is the answer",
    combine=least,
    check=candidates,
    compares=True,
)
