"""What tests in a browser share. They skip themselves where there is no playwright."""

import os
import pathlib

import pytest


@pytest.fixture(scope="module")
def chromium():
    from browser import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(chromium):
    """Opens an address and returns its tab, with what went wrong and what was asked for."""
    from browser import visitor

    with visitor(chromium) as opened:
        yield opened


@pytest.fixture
def keep(tmp_path):
    """Takes a picture of a whole page, and keeps it where DISCREET_SCREENSHOTS says."""
    folder = pathlib.Path(os.environ.get("DISCREET_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)

    def kept(tab, name):
        path = folder / f"{name}.png"
        tab.screenshot(path=path, full_page=True)
        assert path.stat().st_size > 20_000

    return kept
