"""What stands in the keys of tables: numbers, places of categories, and what is missing."""

import hashlib

# What stands for a value that is missing; no other number is as large. Both are exact in float32.
MISSING = 2.0**127
LARGEST = 2.0**126

# Categories that nobody listed are known by one of so many places.
PLACES = 512


def place_of(name: str) -> int:
    """Return the place of a category that nobody listed: the same everywhere, and for ever.

    Args:
        name: of the category.
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "little") % PLACES
