"""Marks the audit rows that still have their prompts and raw replies."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, true for existing rows, and an index of the rows in which it is true."""
    op.add_column("audit", sa.Column("whole", sa.Boolean, nullable=False, server_default=sa.true()))
    where = sa.text("whole")
    op.create_index("audit_whole", "audit", ["at"], postgresql_where=where, sqlite_where=where)


def downgrade() -> None:
    """Remove both."""
    op.drop_index("audit_whole", "audit")
    op.drop_column("audit", "whole")
