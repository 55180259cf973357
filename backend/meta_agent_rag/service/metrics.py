"""Prometheus metrics of one process: number and duration of requests, and paid model calls.

Labels are only addresses of the service, stages and tiers: no clients, questions, or paths made up by a client.
"""

import time
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ..llm.messages import Reply
from .request import CLIENT_WENT, ModelCall, RequestContext

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0, 30.0, 60.0, 120.0)


@dataclass(kw_only=True)
class Metrics:
    """The service's metrics, in their own registry."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        own = self.registry
        self.requests = Counter("marag_requests", "Responses.", ["endpoint", "status"], registry=own)
        self.seconds = Histogram(
            "marag_request_seconds", "From request to end of response.", ["endpoint"], buckets=_SECONDS, registry=own
        )
        self.in_flight = Gauge("marag_requests_in_flight", "Requests in progress.", registry=own)
        staged = ["stage", "tier"]
        self.calls = Counter("marag_model_calls", "Calls of a model.", [*staged, "outcome"], registry=own)
        self.tokens = Counter("marag_model_tokens", "Tokens of model calls.", [*staged, "kind"], registry=own)
        self.cost = Counter("marag_model_cost_usd", "Known cost of model calls.", staged, registry=own)
        self.waiting = Gauge("marag_audit_waiting", "Records not yet written to the database.", registry=own)

    def served(self, record: RequestContext, endpoint: str) -> None:
        """Count a request when it ends."""
        self.requests.labels(endpoint, str(record.status or CLIENT_WENT)).inc()
        self.seconds.labels(endpoint).observe(time.monotonic() - record.arrived)
        for call in record.calls:
            self._called(call)

    def _called(self, call: ModelCall) -> None:
        row = call.row
        staged = (row.stage, row.tier)
        outcome = "cached" if row.cached else "answered" if isinstance(call.outcome, Reply) else "failed"
        self.calls.labels(*staged, outcome).inc()
        counts = {"prompt": row.prompt_tokens, "cache_hit": row.cache_hit_tokens, "completion": row.completion_tokens}
        for kind, count in counts.items():
            self.tokens.labels(*staged, kind).inc(count or 0)
        self.cost.labels(*staged).inc(float(row.paid_usd or 0))

    def text(self, *, audit_waiting: int) -> bytes:
        """All metrics in Prometheus's text format."""
        self.waiting.set(audit_waiting)
        return generate_latest(self.registry)
