"""A derivation: a plan made from the question alone, one look-up per fact, and an operator in code.

Only the values are exported here, so that the state can hold them; `derive.py` makes them.
"""

from .derivation import Chain, Derivation, Fact, Plan, Planned

__all__ = ["Chain", "Derivation", "Fact", "Plan", "Planned"]
