"""The mode of an answer: grounded, teacher or coach."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


TAKEN_OUT = """
SELECT relname FROM pg_class
WHERE relkind = 'r' AND relname ~ '^audit_[0-9]{4}_[0-9]{2}$' AND pg_table_is_visible(oid)
AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = pg_class.oid)
"""


def upgrade() -> None:
    """Add the column, empty for existing rows; also to months that an unfinished archive run has detached."""
    op.add_column("audit", sa.Column("mode", sa.String(16), nullable=False, server_default=""))
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        for name in connection.execute(sa.text(TAKEN_OUT)).scalars().all():
            op.add_column(name, sa.Column("mode", sa.String(16), nullable=False, server_default=""))


def downgrade() -> None:
    """Remove it."""
    op.drop_column("audit", "mode")
