"""How the answer was asked for: grounded, teacher or coach."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, empty for what there is."""
    op.add_column("audit", sa.Column("mode", sa.String(16), nullable=False, server_default=""))


def downgrade() -> None:
    """Remove it."""
    op.drop_column("audit", "mode")
