"""Who may ask: bearer tokens, of which the server knows nothing but hashes."""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import InvalidInput
from discreet.noise import SystemEntropy
from discreet.serve.wire import Refused

_HASH = re.compile(r"[0-9a-fA-F]{64}")
# No token that was made here is longer, and hashing must not be made to take long.
_LONGEST = 1_024


def new_token() -> tuple[str, str]:
    """Return a token of 256 random bits, and its hash: the line for the file of tokens."""
    bits = SystemEntropy().words(4).tobytes()
    token = base64.urlsafe_b64encode(bits).decode().rstrip("=")
    return token, hash_of(token)


def hash_of(token: str) -> str:
    """Return the hash of a token. One round does: a random token cannot be guessed.

    Args:
        token: as it is sent.
    """
    return hashlib.sha256(token.encode()).hexdigest()


@dataclass(frozen=True, repr=False)
class Tokens:
    """Hashes of the tokens that are accepted.

    Attributes:
        hashes: SHA-256, in hexadecimal, small letters.
    """

    hashes: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> "Tokens":
        """Return the hashes in a file, one a line. Blank lines, and lines with #, are skipped.

        Args:
            path: of the file.

        Raises:
            InvalidInput: a line is no hash, or there is none. It does not quote the line: it may be
                a token.
        """
        try:
            lines = path.read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"Expected {path} to be a file of hashes, one a line.") from None
        found = []
        for place, line in enumerate(map(str.strip, lines), 1):
            if not line or line.startswith("#"):
                continue
            if _HASH.fullmatch(line) is None:
                raise InvalidInput(
                    f"Expected line {place} of {path} to be the SHA-256 hash of a token: 64 "
                    "hexadecimal digits, as discreet serve --new-token prints it."
                )
            found.append(line.lower())
        if not found:
            raise InvalidInput(f"Expected {path} to have the hash of a token.")
        return cls(tuple(found))

    def check(self, authorization: str | None) -> None:
        """Raise `Refused` unless a request has a token that is known.

        All hashes are compared, each in constant time: how long it takes tells nothing.

        Args:
            authorization: the header, if there is one.
        """
        scheme, _, token = (authorization or "").partition(" ")
        given = hash_of(token.strip()[:_LONGEST]) if scheme.lower() == "bearer" else ""
        known = [hmac.compare_digest(given, each) for each in self.hashes]
        if not any(known):
            raise Refused(
                401,
                "Expected a token that is known here, in a header: Authorization: Bearer TOKEN.",
                {"www-authenticate": "Bearer", "connection": "close"},
            )
