"""Chooses the embedded provider's model: EMBEDDED_MODEL_PATH, else EMBEDDED_MODEL, else the packaged one."""

import os
from contextlib import suppress
from pathlib import Path

from ...errors import SettingsError
from ...settings import Settings
from .catalogue import PACKAGED, LocalModel, local_model, local_models

AUTO = "auto"
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files in which Linux states a container's limit."""


def listed_model(settings: Settings) -> LocalModel | None:
    """The listed model that EMBEDDED_MODEL selects, downloaded or not; `None` for the packaged model.

    `auto` chooses the largest that is downloaded and fits this machine's memory. Raises `SettingsError`.
    """
    name = settings.embedded_model
    if name == AUTO:
        found = [model for model in local_models().values() if model.path(settings).is_file() and fits(model, settings)]
        return max(found, key=lambda model: model.parameters, default=None)
    if name == PACKAGED:
        return None
    if name not in local_models():
        known = ", ".join((AUTO, PACKAGED, *local_models()))
        raise SettingsError(
            f"EMBEDDED_MODEL names the unknown model {name!r}; choose from: {known}, or set "
            "EMBEDDED_MODEL_PATH to a GGUF file."
        )
    return local_model(name)


def fits(model: LocalModel, settings: Settings) -> bool:
    """Does this machine have the memory for it? Assumed if the system does not report its memory."""
    memory = machine_memory()
    return memory is None or model.memory(settings) <= memory


def own_model_file(settings: Settings) -> Path | None:
    """The file used instead of the packaged model, existing or not; `None` if that one is used.

    Raises `SettingsError` for an unknown name.
    """
    if settings.embedded_model_path is not None:
        return settings.embedded_model_path
    model = listed_model(settings)
    return None if model is None else model.path(settings)


def require_file(settings: Settings, file: Path) -> None:
    """Raise `SettingsError` with the remedy if the file of `own_model_file` does not exist."""
    if file.is_file():
        return
    if settings.embedded_model_path is not None:
        raise SettingsError(f"EMBEDDED_MODEL_PATH {str(file)!r} is not a file; give a GGUF file.")
    name = settings.embedded_model
    raise SettingsError(
        f"EMBEDDED_MODEL {name!r} is not downloaded; run `marag models get {name}`, or set EMBEDDED_MODEL=auto."
    )


def decided(settings: Settings) -> Settings:
    """The settings with `auto` resolved to the current model, so that later downloads do not change a run."""
    if settings.embedded_model_path is not None or settings.embedded_model != AUTO:
        return settings
    model = listed_model(settings)
    return settings.model_copy(update={"embedded_model": PACKAGED if model is None else model.name})


def machine_memory() -> int | None:
    """Bytes of memory, or the container's limit if that is lower; `None` if unknown.

    Total memory, not free memory: the choice of the model should not change from hour to hour.
    """
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not available on Windows
        return None
    limits = [whole]
    for place in _LIMITS:
        with suppress(OSError, ValueError):  # missing, or "max"
            limits.append(int(Path(place).read_text(encoding="ascii")))
    return min(limits)
