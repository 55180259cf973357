"""No dependency has a known vulnerability, in the lock file or at the lowest versions the package allows."""

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
ADVISORIES = yaml.safe_load(Path(__file__).with_name("advisories.yaml").read_text(encoding="utf-8"))
LOCKED = {
    package["name"]: Version(package["version"])
    for package in tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    if "version" in package
}


def floors() -> dict[str, Version]:
    """The lowest version of each dependency that an installation can resolve to."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    asked = [one for one in map(Requirement, named) if one.specifier]  # an extra may require a newer version
    return {
        canonicalize_name(one.name): max(
            Version(part.version) for part in one.specifier if part.operator in {">=", "=="}
        )
        for one in asked
    }


def test_advisories_and_versions_are_found() -> None:
    assert len(LOCKED) > 100
    assert len(floors()) > 40
    assert len(ADVISORIES) > 10


@pytest.mark.parametrize("advisory", ADVISORIES, ids=lambda row: f"{row['package']} {row['advisory']}")
def test_no_known_vulnerability(advisory: dict[str, str]) -> None:
    package, fixed = advisory["package"], Version(advisory["fixed"])
    assert LOCKED[package] >= fixed
    assert floors().get(package, fixed) >= fixed
