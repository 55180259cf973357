"""Prometheus metrics of this process: number and duration of requests, and paid model calls.

Labels are only addresses of the service, stages and tiers: no clients, questions, or paths made up by a client.
"""

import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ..llm.messages import Reply
from .request import CLIENT_WENT, RequestContext

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0, 30.0, 60.0, 120.0)
_STAGED = ("stage", "tier")
REGISTRY = CollectorRegistry()
IN_FLIGHT = Gauge("marag_requests_in_flight", "Requests in progress.", registry=REGISTRY)
_REQUESTS = Counter("marag_requests", "Responses.", ["endpoint", "status"], registry=REGISTRY)
_DURATION = Histogram(
    "marag_request_seconds", "From request to end of response.", ["endpoint"], buckets=_SECONDS, registry=REGISTRY
)
_CALLS = Counter("marag_model_calls", "Calls of a model.", [*_STAGED, "outcome"], registry=REGISTRY)
_TOKENS = Counter("marag_model_tokens", "Tokens of model calls.", [*_STAGED, "kind"], registry=REGISTRY)
_COST = Counter("marag_model_cost_usd", "Known cost of model calls.", _STAGED, registry=REGISTRY)


def count(record: RequestContext, endpoint: str) -> None:
    """Count a request when it ends, with its model calls."""
    _REQUESTS.labels(endpoint, str(record.status or CLIENT_WENT)).inc()
    _DURATION.labels(endpoint).observe(time.monotonic() - record.arrived)
    for call in record.calls:
        row, staged = call.row, (call.row.stage, call.row.tier)
        outcome = "cached" if row.cached else "answered" if isinstance(call.outcome, Reply) else "failed"
        _CALLS.labels(*staged, outcome).inc()
        _TOKENS.labels(*staged, "prompt").inc(row.prompt_tokens or 0)
        _TOKENS.labels(*staged, "cache_hit").inc(row.cache_hit_tokens or 0)
        _TOKENS.labels(*staged, "completion").inc(row.completion_tokens or 0)
        _COST.labels(*staged).inc(float(row.paid_usd or 0))
