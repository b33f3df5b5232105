"""Fixtures of the typing tests."""

import concurrent.futures
from pathlib import Path

import pytest

from .checkers import CHECKERS, INSTALLED, Errors, data_files


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """A directory that is kept from one run of the tests to the next, where pytest keeps any."""
    kept = getattr(pytestconfig, "cache", None)
    return Path(kept.mkdir("typing")) if kept else tmp_path_factory.mktemp("caches")


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory, caches: Path) -> dict[str, Errors]:
    """The errors of every checker over all files: one process each, two at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        started = {}
        for name in INSTALLED:
            started[name] = pool.submit(
                CHECKERS[name], data_files(tmp_path_factory.mktemp(name), caches / name)
            )
        return {name: report.result() for name, report in started.items()}
