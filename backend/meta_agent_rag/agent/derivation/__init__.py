"""A derivation: facts in place of opinions. A plan from the question alone, one look-up a fact, an operator in code.

The values alone are exported here, so that the state can hold them; `derive.py` makes them.
"""

from .derivation import Derivation, Fact
from .plan import Chain, Plan, Planned

__all__ = ["Chain", "Derivation", "Fact", "Plan", "Planned"]
