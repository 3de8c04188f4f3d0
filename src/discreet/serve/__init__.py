"""Released files over HTTP: answers for those who have no Python. Needs the extra `serve`.

Post-processing only: whatever is asked, however often, costs no privacy, so the server counts no
budget. `docs/serve.md` says what it protects, and what it does not.
"""

from discreet.serve.app import application
from discreet.serve.handling import Settings
from discreet.serve.limits import Limits
from discreet.serve.shelf import Shelf
from discreet.serve.tokens import Tokens, new_token

__all__ = ["Limits", "Settings", "Shelf", "Tokens", "application", "new_token"]
