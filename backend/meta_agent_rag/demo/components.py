"""The components of a tab, and the behaviour shared by both conversations."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..chat.history import History
from ..errors import InputError
from .conversations.moments import Moment
from .conversations.trail import Message

if TYPE_CHECKING:
    import gradio as gr

Updates: TypeAlias = dict[Any, Any]
"""Components with their new values."""


def page() -> "gr.Blocks":
    """The page being laid out; its events concern the visitor who opens and closes it."""
    from gradio.context import get_blocks_context

    context = get_blocks_context()
    assert context is not None
    return context.root_block


def uploaded_files(paths: Sequence[str] | None) -> list[Path]:
    """The files of an upload; raises `InputError` for a path outside Gradio's upload folder, whoever named it."""
    from gradio.utils import get_upload_folder

    folder, files = Path(get_upload_folder()).resolve(), [Path(path).resolve() for path in paths or ()]
    if not all(file.is_relative_to(folder) for file in files):
        raise InputError("Only files that were uploaded here can be read; upload the file again.")
    return files


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The components of a tab."""

    @property
    def all(self) -> list[Any]:
        """Every component."""
        return [getattr(self, part.name) for part in fields(self)]


@dataclass(frozen=True, kw_only=True)
class OwnDocuments:
    """A visitor's documents, available to every conversation: the `PrivateCorpus` and the names of its files."""

    private: "gr.State"
    files: "gr.State"


@dataclass(frozen=True, kw_only=True)
class TalkParts(Parts):
    """The components of a conversation; `corpus` selects its documents."""

    history: "gr.State"
    corpus: "gr.Dropdown"
    talk: "gr.Chatbot"
    message: "gr.Textbox"
    send: "gr.Button"
    stop: "gr.Button"
    reset: "gr.Button"

    def busy(self, busy: bool) -> Updates:
        """While a message is being answered, sending is disabled and stopping enabled."""
        import gradio as gr

        return {
            self.send: gr.update(interactive=not busy),
            self.stop: gr.update(interactive=busy),
            self.message: gr.update(interactive=not busy),
        }

    def emptied(self) -> Updates:
        """A conversation that has not started."""
        return {**self.busy(False), self.talk: [], self.history: History()}

    def at(self, moment: Moment, shown: Sequence[Message]) -> Updates:
        """The conversation at a moment, below the messages `shown` before."""
        return {
            self.talk: [*shown, *moment.messages],
            **({} if moment.history is None else {self.history: moment.history}),
            **self.busy(not moment.is_last),
        }
