"""A process that encodes requests from stdin (JSON lines) with one runtime; see `benchmarks.speed`.

Its arguments are the runtime, the encoder's name and the data folder. It imports only what an encoder
needs, so that its start-up and memory are those of the encoder.
"""

import json
import sys
import time
from pathlib import Path

from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.settings import Settings

_TORCH = {"torch", "transformers", "sentence_transformers"}


def main() -> None:
    """Answer each request `{"kind", "texts"}` with its duration in seconds and the state of the process."""
    runtime, name, data_dir = sys.argv[1:]
    settings = Settings.load(encoder_runtime=runtime, marag_data_dir=Path(data_dir))
    encoder = load_encoder(settings, name).encoder
    for line in sys.stdin:
        request = json.loads(line)
        encode = encoder.encode_queries if request["kind"] == "query" else encoder.encode_passages
        wall, cpu = time.perf_counter(), time.process_time()
        vectors = encode(request["texts"])
        answer = {
            "seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
            "cpu_seconds_in_all": time.process_time(),
            "vectors": vectors.tolist() if request["kind"] == "query" else None,
            "imported": sorted(_TORCH & set(sys.modules)),
            "peak_mb": _peak_mb(),
            "encoder": encoder.name,
        }
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _peak_mb() -> float | None:
    """Peak memory; `None` if the system does not report it as Linux does."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0]) / 1024 if peaks else None


if __name__ == "__main__":
    main()
