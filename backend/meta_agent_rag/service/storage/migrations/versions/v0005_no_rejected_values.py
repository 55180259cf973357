"""Messages of rejected bodies contained the rejected values; they are removed."""

import sqlalchemy as sa
from alembic import op

from meta_agent_rag.service.storage.migrations.versions.v0003_audit_mode import TAKEN_OUT

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_REMOVE = "UPDATE {table} SET message = NULL WHERE message LIKE 'RequestValidationError%'"


def upgrade() -> None:
    """Remove them, also from months that an unfinished archive run has detached."""
    connection = op.get_bind()
    op.execute(_REMOVE.format(table="audit"))
    if connection.dialect.name == "postgresql":
        for name in connection.execute(sa.text(TAKEN_OUT)).scalars().all():
            op.execute(_REMOVE.format(table=name))


def downgrade() -> None:
    """Nothing can restore them."""
