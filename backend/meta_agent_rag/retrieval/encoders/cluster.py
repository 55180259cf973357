"""Passages are encoded by the machines of a Ray cluster; questions, which are few, locally."""

import logging
import socket
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...errors import MetaRagError, SettingsError
from ...extras import require
from ...settings import Settings, child_environment
from ..vectors import FloatMatrix
from . import Encoder
from .loading import load_encoder

_FEWEST = 16
"""The minimum number of texts per task; for fewer, the transfer takes longer than the encoding."""
_REACHED_WITHIN_S = 5.0


class ClusterEncoder:
    """An `Encoder` whose passages are encoded by tasks on the cluster that this process has joined (`join`).

    A group of texts is split into one part for each node, whose task uses all of its processors, or, with an encoder
    on torch and on a cluster with GPUs, for each GPU unless ENCODER_DEVICE=cpu. A task whose node is lost is repeated
    on another.
    """

    def __init__(self, inner: Encoder, settings: Settings) -> None:
        import ray

        self._inner = inner
        self._device = settings.encoder_device
        join("--engine ray")
        resources: dict[str, float] = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0)) if inner.name.startswith("torch:") and self._device != "cpu" else 0
        nodes = sum(one["Alive"] and one["Resources"].get("CPU", 0) >= 1 for one in ray.nodes())
        self._tasks = max(1, gpus or nodes)
        self._remote = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0, max_retries=-1, scheduling_strategy="SPREAD")(
            encoded
        )

    @property
    def name(self) -> str:
        """The name of the nodes' encoder."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._inner.dimension

    def encode_queries(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode questions locally."""
        return self._inner.encode_queries(texts)

    def encode_passages(self, texts: Sequence[str]) -> FloatMatrix:
        """Encode passages on the cluster, in one part for each node or GPU."""
        length = max(_FEWEST, -(-len(texts) // self._tasks))
        parts = [list(texts[start : start + length]) for start in range(0, len(texts), length)]
        if not parts:
            return self._inner.encode_passages(texts)
        return np.concatenate(results([self._remote.remote(self.name, self._device, part) for part in parts]))


def join(wanted: str) -> int:
    """Join the existing Ray cluster, or start one on this machine; returns its number of processors.

    Raises `MissingExtraError`, naming the feature `wanted`, without the extra `ray`, and `SettingsError` if there is no
    cluster at RAY_ADDRESS.
    """
    require("ray", wanted)
    import ray

    if not ray.is_initialized():
        _require_reachable(wanted)
        try:
            ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:  # noqa: BLE001  # Ray's failures to start have no common base
            why = " ".join(str(error).split())[:200]
            raise SettingsError(
                f"{wanted} could not join or start a Ray cluster ({why}); check RAY_ADDRESS and `ray status`."
            ) from None
    resources: dict[str, float] = ray.cluster_resources()
    return max(1, int(resources.get("CPU", 1)))


def _require_reachable(wanted: str) -> None:
    """Ray itself tries an address for minutes."""
    address = child_environment().get("RAY_ADDRESS", "")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACHED_WITHIN_S).close()
    except OSError as error:
        raise SettingsError(
            f"{wanted} could not reach the Ray cluster at RAY_ADDRESS={address!r} ({error.strerror or error}); start "
            "it there, or unset RAY_ADDRESS to use this machine."
        ) from None


def results(tasks: Sequence[Any]) -> list[Any]:
    """The results of the tasks, in order. Raises the error of a task as if it had occurred here."""
    import ray

    try:
        found: list[Any] = ray.get(list(tasks))
    except ray.exceptions.RayTaskError as error:  # its text is a traceback from another machine
        if isinstance(error.cause, MetaRagError):
            raise error.cause from None
        raise
    return found


def encoded(name: str, device: str, texts: Sequence[str]) -> FloatMatrix:
    """On a node: the vectors of some passages. Raises `SettingsError` if the node has another encoder."""
    return _loaded(name, device).encode_passages(texts)


@cache
def _loaded(name: str, device: str) -> Encoder:
    encoder = load_encoder(Settings.load([f"ENCODER={name}", f"ENCODER_DEVICE={device}"])).encoder
    if encoder.name != name:
        raise SettingsError(
            f"A node of the cluster has the encoder {encoder.name!r} instead of {name!r}; install the extra that it "
            "needs on each node."
        )
    return encoder
