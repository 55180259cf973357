"""Keys and the audit log, which on PostgreSQL is partitioned by month."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _document() -> sa.JSON:
    return sa.JSON().with_variant(JSONB(), "postgresql")


def _time() -> sa.DateTime:
    return sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create both tables, and a default partition for rows of months without one."""
    op.create_table(
        "service_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("scopes", _document(), nullable=False),
        sa.Column("daily_usd", sa.Double),
        sa.Column("corpora", _document()),
        sa.Column("created", _time(), nullable=False),
        sa.Column("expires", _time()),
        sa.Column("revoked", _time()),
    )
    op.create_table("audit", *_audit_columns(), postgresql_partition_by="RANGE (at)")
    for name, columns in (
        ("audit_query_id", ["query_id"]),
        ("audit_answer_id", ["answer_id"]),
        ("audit_at", ["at"]),
        ("audit_client_at", ["client_id", "at"]),
    ):
        op.create_index(name, "audit", columns)
    if op.get_context().dialect.name == "postgresql":
        op.execute("CREATE TABLE audit_other PARTITION OF audit DEFAULT")


def downgrade() -> None:
    """Drop both tables with their contents."""
    op.drop_table("audit")
    op.drop_table("service_keys")


def _audit_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("query_id", sa.String(32), primary_key=True),
        sa.Column("at", _time(), primary_key=True),
        sa.Column("answer_id", sa.String(32), nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("client_id", sa.String(16), nullable=False),
        sa.Column("client_name", sa.String(100), nullable=False),
        sa.Column("endpoint", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("success", sa.Boolean, nullable=False),
        sa.Column("error", sa.String(64)),
        sa.Column("message", sa.Text),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("source_mode", sa.String(32), nullable=False),
        sa.Column("corpus", sa.String(64)),
        sa.Column("session", sa.String(64)),
        sa.Column("queries", _document(), nullable=False),
        sa.Column("passages", _document(), nullable=False),
        sa.Column("degraded", _document(), nullable=False),
        sa.Column("seconds", _document(), nullable=False),
        sa.Column("model_calls", _document(), nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("short_answer", sa.Text),
        sa.Column("refused", sa.String(64)),
        sa.Column("stop_reason", sa.String(64)),
        sa.Column("rounds", sa.Integer, nullable=False),
        sa.Column("confidence", sa.Double),
        sa.Column("level", sa.String(16)),
        sa.Column("citations", _document(), nullable=False),
        sa.Column("prompt_tokens", sa.Integer, nullable=False),
        sa.Column("cache_hit_tokens", sa.Integer, nullable=False),
        sa.Column("completion_tokens", sa.Integer, nullable=False),
        sa.Column("cost_usd", sa.Double),
    ]
