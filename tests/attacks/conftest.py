"""What an attacker holds: one release of every kind, and its file."""

import pytest
from every_release import KINDS, file_of


class Shelf:
    """Releases and their files, each made when it is first asked for."""

    def __init__(self, folder):
        self._folder = folder
        self._made = {}

    def release(self, name, **options):
        """The release of a kind; options as for `Kind.build`."""
        asked = (name, *options.items())
        if asked not in self._made:
            self._made[asked] = KINDS[name].build(self._folder, **options)
        return self._made[asked]

    def file(self, name, **options):
        """The bytes of its file."""
        asked = ("file", name, *options.items())
        if asked not in self._made:
            self._made[asked] = file_of(self.release(name, **options), self._folder)
        return self._made[asked]


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    return Shelf(tmp_path_factory.mktemp("shelf"))
