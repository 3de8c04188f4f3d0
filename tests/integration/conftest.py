"""What tests in a browser share. They skip themselves where there is no playwright."""

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
