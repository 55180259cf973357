"""The coach's verdict, whether it gave a hint, and its topic."""

import sqlalchemy as sa
from alembic import op

from meta_agent_rag.service.storage.migrations.versions.v0003_audit_mode import TAKEN_OUT

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_COLUMNS = {"coach_success": sa.Boolean, "hint": sa.Boolean, "topic": sa.Text}


def upgrade() -> None:
    """Add the columns, null for existing rows; also to months that an unfinished archive run has detached."""
    connection = op.get_bind()
    tables = ["audit"]
    if connection.dialect.name == "postgresql":
        tables += connection.execute(sa.text(TAKEN_OUT)).scalars().all()
    for table in tables:
        for name, kind in _COLUMNS.items():
            op.add_column(table, sa.Column(name, kind()))


def downgrade() -> None:
    """Remove them."""
    for name in _COLUMNS:
        op.drop_column("audit", name)
