"""Which candidate has the smallest number."""

from ..comparing import least
from ..operator import Operator, candidates

OPERATOR = Operator(
    name="least",
    when="the candidate with the smallest number is the answer",
    combine=least,
    check=candidates,
    compares=True,
)
