"""A process that encodes with one runtime what it is told to on stdin, a JSON line each; see `benchmarks.speed`.

Its arguments are the runtime, the encoder's name and the data folder. It imports what an encoder
needs and nothing else, so that its start and its memory are the encoder's.
"""

import json
import sys
import time
from pathlib import Path

from meta_agent_rag.retrieval.encoders.loading import load_encoder
from meta_agent_rag.settings import Settings

_TORCH = {"torch", "transformers", "sentence_transformers"}


def main() -> None:
    """Answer each request `{"kind", "texts"}` with the seconds that it took and what the process has come to."""
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
    """Most memory that was held at once; `None` where the system does not say it in Linux's way."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0]) / 1024 if peaks else None


if __name__ == "__main__":
    main()
