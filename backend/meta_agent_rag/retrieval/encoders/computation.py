"""Where and in which batches an encoder computes; its name does not include them, since its vectors are the same."""

from dataclasses import dataclass

from ...errors import SettingsError
from ...settings import Settings

_ON_THE_CPU = ("auto", "cpu")


@dataclass(frozen=True, kw_only=True)
class Computation:
    """`device` is torch's name for it, or `auto`; `batch` is the number of texts at once, `None` for the default."""

    device: str = "auto"
    batch: int | None = None

    @property
    def torch_device(self) -> str | None:
        """The device for torch; `None` lets it choose."""
        return None if self.device == "auto" else self.device


BY_DEFAULT = Computation()


def computation(settings: Settings) -> Computation:
    """What the settings require. Raises `SettingsError` for a GPU with onnxruntime, or one that torch does not find."""
    device = settings.encoder_device
    if device not in _ON_THE_CPU:
        if settings.encoder_runtime != "torch":
            raise SettingsError(
                f"ENCODER_DEVICE={device} requires ENCODER_RUNTIME=torch, because onnxruntime encodes on the CPU; "
                "set it, or ENCODER_DEVICE=auto."
            )
        _require_device(device)
    return Computation(device=device, batch=settings.encoder_batch)


def _require_device(device: str) -> None:
    import torch

    if device == "mps":
        if not torch.backends.mps.is_available():
            raise _missing(device, "no Apple GPU")
        return
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not found:
        raise _missing(device, "no CUDA GPU")
    if int(device.partition(":")[2] or 0) >= found:
        raise _missing(device, f"only {found} CUDA GPU{'s' if found > 1 else ''}, counted from cuda:0")


def _missing(device: str, found: str) -> SettingsError:
    return SettingsError(
        f"ENCODER_DEVICE={device} is not available: PyTorch finds {found} on this machine; "
        "set ENCODER_DEVICE=auto, or install its driver and a PyTorch build for it."
    )
