"""A service in a process of its own: `python -m tests.service_process PORT` serves until it is ended.

Its model is a script that takes 20 ms a call, or what LLM_BASE_URL names.
"""

import sys

from meta_agent_rag.retrieval.batching import AsyncEncoder
from meta_agent_rag.retrieval.hashing import HashEncoder
from meta_agent_rag.service.parts import open_service
from meta_agent_rag.service.running import serve_opened
from meta_agent_rag.settings import Settings
from meta_agent_rag.testing import ScriptedModel
from tests.service import SCRIPT, finding

if __name__ == "__main__":
    settings = Settings.load()
    serve_opened(
        lambda: open_service(
            settings,
            (),
            transport=None if settings.llm_base_url else ScriptedModel(SCRIPT, seconds=0.02),
            monitor_encoder=AsyncEncoder(HashEncoder()),
            retrievers=finding(),
        ),
        host="127.0.0.1",
        port=int(sys.argv[1]),
    )
