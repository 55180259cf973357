"""The settings of a shard on a node: those of the run, except for what belongs to the node."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import SecretStr
from pydantic_settings import EnvSettingsSource

from meta_agent_rag.errors import CostLimitError
from meta_agent_rag.llm.providers import choose_provider
from meta_agent_rag.settings import Key, Settings, Url


@dataclass(kw_only=True)
class ShardContext:
    """What a shard's task passes to the runner's command, and learns from it.

    `settings` are those of the run; `at_limit` says that the shard stopped at its cost limit.
    """

    settings: Settings
    at_limit: bool = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note if the cost limit stops what is done."""
        try:
            yield
        except CostLimitError:
            self.at_limit = True
            raise


def on_node(run: Settings, node: Settings) -> Settings:
    """The settings of the run, with the node's own data folder, addresses, and keys that the run lacks.

    A node's address, which must be in its own environment (a `.env` is that of the run), only replaces another one, and
    its keys never change the choice of the provider or its key.
    """
    fields = Settings.model_fields
    addresses = [name for name, field in fields.items() if field.annotation == Url | None]
    set_here = EnvSettingsSource(Settings).env_vars
    own = [name for name in addresses if getattr(run, name) and name in set_here]
    moved = {name: there for name in own if (there := getattr(node, name))}
    found = run.model_copy(update={"marag_data_dir": node.marag_data_dir, **moved})
    for name, field in fields.items():
        if field.annotation == Key | None and getattr(run, name) is None and (key := getattr(node, name)) is not None:
            found = _with_key(found, name, key)
    return found


def _with_key(settings: Settings, name: str, key: SecretStr) -> Settings:
    keyed = settings.model_copy(update={name: key})
    before, after = choose_provider(settings), choose_provider(keyed)
    same = before.reason == after.reason and before.api_key in (None, after.api_key)
    return keyed if same else settings


def endpoint_keys(settings: Settings) -> dict[str, SecretStr]:
    """The keys that endpoints of MODEL_ROLES take from variables that are no settings, by variable."""
    named = {row.key for row in settings.model_roles.endpoints.values() if row.key}
    own = sorted(name for name in named if name.lower() not in Settings.model_fields)
    return {name: key for name in own if (key := settings.secret(name)) is not None}
