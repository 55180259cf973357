"""Test doubles with realistic behaviour, for the package's tests and for yours."""

from .scripted import Scripted, ScriptedModel, universal_reply

__all__ = ["Scripted", "ScriptedModel", "universal_reply"]
