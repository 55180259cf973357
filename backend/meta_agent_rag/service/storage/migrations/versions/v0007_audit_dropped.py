"""The passages that were found but not shown to a model, with the reasons."""

import sqlalchemy as sa
from alembic import op

from meta_agent_rag.service.storage.migrations.versions.v0003_audit_mode import TAKEN_OUT
from meta_agent_rag.service.storage.tables import Document

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, empty for existing rows; also to months that an unfinished archive run has detached."""
    op.add_column("audit", _column())
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for name in connection.execute(sa.text(TAKEN_OUT)).scalars().all():
            op.add_column(name, _column())


def downgrade() -> None:
    """Remove it."""
    op.drop_column("audit", "dropped")


def _column() -> sa.Column[object]:
    return sa.Column("dropped", Document, nullable=False, server_default=sa.text("'[]'"))
