"""What tests of models and retrievers share."""

import asyncio
import functools
import inspect
import subprocess
import sys

import corpora
import helped
import pytest

import discreet
from discreet.integrations.retrieval import PublicPassages
from discreet.testing import Seeded

# Some processors die on half-precision products, which no test can catch: another process tries.
_TRIAL = "import torch; torch.nn.Linear(16, 16).to(torch.{0})(torch.ones(3, 16, dtype=torch.{0}))"


@functools.cache
def _tried(name):
    command = [sys.executable, "-c", _TRIAL.format(name)]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.fixture(scope="session")
def half_precision_works():
    """Skip where this processor has no linear layers of a precision."""

    def check(dtype):
        name = str(dtype).partition(".")[2]
        if _tried(name):
            pytest.skip(f"linear layers of {name} die on this processor ({_tried(name)})")

    return check


def pytest_configure(config):
    """Name the marks of langchain-tests, whose plugins are off: none of those tests runs here."""
    for name in ("benchmark", "vcr"):
        config.addinivalue_line("markers", f"{name}: of suites of langchain-tests")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run coroutines of other people's suites, without a plugin that may not be there."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture(scope="session")
def corpus():
    """A corpus with topics, labels, words and names; no text is nearest to the last topic."""
    topics = [*corpora.TOPICS, "violin", "arrived card"]
    return discreet.Corpus.build(
        corpora.texts(400),
        corpora.labels(400),
        encoder=corpora.encode,
        topics=topics,
        classes=list(corpora.CLASSES),
        words=corpora.VOCABULARY,
        facts=True,
        rows_hint=1_000,
        epsilon=4.0,
        entropy=Seeded(1),
    )


@pytest.fixture(scope="session")
def memory():
    """What `helped` says."""
    return helped.memory()


@pytest.fixture(scope="session")
def passages(memory):
    """Public pages, found by what the memory answers."""
    numbered = [{"page": place} for place in range(len(helped.PAGES))]
    return PublicPassages(memory, helped.PAGES, encoder=corpora.encode, metadata=numbered)
