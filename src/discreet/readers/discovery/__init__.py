"""Which names are in the data, as far as many units have them."""

from discreet.readers.discovery.mechanism import Discovered, Name, discover

__all__ = ["Discovered", "Name", "discover"]
