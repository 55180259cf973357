"""The tables of the service: keys, and the audit log; the migrations create the same ones."""

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

METADATA = MetaData()
Document = JSON().with_variant(JSONB(), "postgresql")

KEYS = Table(
    "service_keys",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("name", String(100), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("scopes", Document, nullable=False),
    Column("daily_usd", Double),
    # null: every corpus that the service was started with
    Column("corpora", Document),
    Column("created", DateTime(timezone=True), nullable=False),
    Column("expires", DateTime(timezone=True)),
    Column("revoked", DateTime(timezone=True)),
)

AUDIT = Table(
    "audit",
    METADATA,
    # PostgreSQL requires the partition column in the primary key
    Column("query_id", String(32), primary_key=True),
    Column("at", DateTime(timezone=True), primary_key=True),
    Column("answer_id", String(32), nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("client_id", String(16), nullable=False),
    Column("client_name", String(100), nullable=False),
    Column("endpoint", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("success", Boolean, nullable=False),
    Column("error", String(64)),
    Column("message", Text),
    Column("question", Text, nullable=False),
    Column("source_mode", String(32), nullable=False),
    # empty if the request was not read that far, and in rows older than this column
    Column("mode", String(16), nullable=False, server_default=""),
    Column("corpus", String(64)),
    Column("session", String(64)),
    Column("queries", Document, nullable=False),
    Column("passages", Document, nullable=False),
    # passages found but not shown to a model, with the reasons; empty in rows older than this column
    Column("dropped", Document, nullable=False, server_default=text("'[]'")),
    Column("degraded", Document, nullable=False),
    Column("seconds", Document, nullable=False),
    Column("model_calls", Document, nullable=False),
    Column("answer", Text),
    Column("short_answer", Text),
    Column("refused", String(64)),
    Column("stop_reason", String(64)),
    Column("rounds", Integer, nullable=False),
    Column("confidence", Double),
    Column("level", String(16)),
    Column("citations", Document, nullable=False),
    # claims with their support, quotes and leaks; empty in rows older than this column
    Column("checks", Document, nullable=False, server_default=text("'{}'")),
    # the coach's `success`, `hint` and `topic`; null in other modes, and in rows older than these columns
    Column("coach_success", Boolean),
    Column("hint", Boolean),
    Column("topic", Text),
    Column("prompt_tokens", Integer, nullable=False),
    Column("cache_hit_tokens", Integer, nullable=False),
    Column("completion_tokens", Integer, nullable=False),
    Column("cost_usd", Double),
    # False once prompts and raw replies were removed; exists only in the database
    Column("whole", Boolean, nullable=False, server_default=true()),
    Index("audit_query_id", "query_id"),
    Index("audit_answer_id", "answer_id"),
    Index("audit_at", "at"),
    Index("audit_client_at", "client_id", "at"),
    Index("audit_whole", "at", postgresql_where=text("whole"), sqlite_where=text("whole")),
    postgresql_partition_by="RANGE (at)",
)
