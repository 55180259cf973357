"""The knowledge deficits that can be diagnosed, one file each, exporting `DEFICIT`.

Built-in files, files of `DEFICITS_DIR` and entry points of the group `meta_agent_rag.deficits` are loaded
and validated in the same way.
"""

from .deficit import Deficit, DeficitRegistry, Findings, discover_deficits

__all__ = ["Deficit", "DeficitRegistry", "Findings", "discover_deficits"]
