"""The image and the compose file are pinned, unprivileged, health-checked and free of secrets."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from meta_agent_rag.settings import Settings

ROOT = Path(__file__).parents[2]
SERVERS = {"qdrant", "elasticsearch", "postgres", "redis"}
SECRET = re.compile(r"(KEY|PASSWORD|TOKEN|PEPPER|SECRET)[A-Z_]*\s*[=:]\s*[^\s$-]", re.IGNORECASE)


def stages() -> list[list[tuple[str, str]]]:
    """The instructions of the Dockerfile, stage by stage, as (word, rest); continued lines are joined."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    found: list[list[tuple[str, str]]] = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            found.append([])
        if word:
            found[-1].append((word, rest.strip()))
    return found


def of(stage: list[tuple[str, str]], word: str) -> list[str]:
    return [rest for found, rest in stage if found == word]


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    return found


def test_the_image_is_slim_unprivileged_and_health_checked() -> None:
    build, final = stages()
    for stage in (build, final):
        (base,) = of(stage, "FROM")
        assert re.match(r"python:3\.\d+-slim-\w+\b", base), "a pinned, slim base"
    (user,) = of(final, "USER")
    assert user not in {"root", "0"}
    order = [word for word, _ in final]
    assert order.index("USER") < order.index("CMD")
    assert all(order.index("USER") > place for place, word in enumerate(order) if word in {"RUN", "COPY"})
    assert of(final, "COPY") == ["--from=build /app/.venv /app/.venv"], "copy only installed files from the build"
    assert of(final, "VOLUME") == ["/data"]
    (health,) = of(final, "HEALTHCHECK")
    compile(json.loads(health[health.index("[") :])[2], "health check", "exec")
    assert "/healthz" in health
    assert json.loads(of(final, "ENTRYPOINT")[0]) == ["marag"]
    assert json.loads(of(final, "CMD")[0])[0] == "serve"
    assert not SECRET.search((ROOT / "Dockerfile").read_text(encoding="utf-8"))


def test_the_image_sets_known_variables_and_copies_existing_files() -> None:
    build, final = stages()
    known = {"PATH", "HOME", "HF_HOME", "PYTHONUNBUFFERED", *(name.upper() for name in Settings.model_fields)}
    set_ = {part.partition("=")[0] for line in of(final, "ENV") for part in shlex.split(line)}
    assert set_ <= known
    assert "MARAG_DATA_DIR" in set_
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for line in of(build, "COPY"):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert source in sent, f"{source} must not be ignored"


def test_the_compose_file_pins_images_and_binds_loopback() -> None:
    assert set(services()) == {"api", *SERVERS}
    for name, service in services().items():
        assert "build" in service or re.search(r":v?\d+\.\d+(\.\d+)?$", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        assert {"healthcheck", "volumes", "mem_limit"} <= set(service), name
    started = {name for name, service in services().items() if "profiles" not in service}
    assert started == {"qdrant", "elasticsearch"}, "the services that `docker compose up` starts without a profile"
    assert not SECRET.search((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def test_the_api_depends_on_the_servers_it_is_configured_with() -> None:
    api = services()["api"]
    settings = {name.lower(): value for name, value in api["environment"].items()}
    assert set(settings) <= set(Settings.model_fields)
    assert set(api["depends_on"]) == SERVERS
    assert all(any(f"//{name}" in url or f"@{name}" in url for url in settings.values()) for name in SERVERS)
    assert settings["marag_data_dir"] == "/data"
    loaded = Settings.load(
        (), **{name: value.replace("${POSTGRES_PASSWORD:-}", "p") for name, value in settings.items()}
    )
    assert loaded.database_url is not None
    assert any(volume.endswith(":/data") for volume in api["volumes"])
