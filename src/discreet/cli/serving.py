"""What `discreet serve` does."""

import sys
from pathlib import Path

from discreet.cli.shell import print_lines, print_page
from discreet.errors import InvalidInput

_NEEDED = "Expected starlette and uvicorn: pip install 'discreet[serve]'."


def serve_files(
    files: list[Path] | None,
    *,
    host: str,
    port: int,
    token_file: Path | None,
    new_token: bool,
    is_open: bool,
    encoder: str | None,
    allow_not_private: bool,
    max_body: int,
    max_queries: int,
    at_once: int,
    timeout: float,
    log_queries: bool,
) -> None:
    """Serve released files until the process is stopped, or make a token.

    Args:
        files: the released files.
        host: the address to listen at.
        port: likewise.
        token_file: of hashes of tokens.
        new_token: whether to print a new token, and nothing else.
        is_open: whether anybody who can reach the server may ask.
        encoder: of corpora.
        allow_not_private: whether files of test sources are served.
        max_body: bytes of a request.
        max_queries: of a request.
        at_once: requests.
        timeout: seconds.
        log_queries: whether what is asked is logged.
    """
    try:
        from discreet.serve import Limits, Settings, Shelf, Tokens
        from discreet.serve import new_token as made
        from discreet.serve.running import log_to, run
    except ImportError:
        raise InvalidInput(_NEEDED) from None
    if new_token:
        token, line = made()
        print_lines({"token": token, "hash": line})
        print_page("The token is for whoever asks. The hash is a line for --token-file.")
        return
    limits = Limits(body=max_body, queries=max_queries, seconds=timeout, at_once=at_once)
    tokens = None if token_file is None else Tokens.read(token_file)
    settings = Settings(limits=limits, tokens=tokens, log_queries=log_queries)
    shelf = Shelf(files or [], encoder=encoder, allow_not_private=allow_not_private)

    def ready(address: str) -> None:
        many = f"{len(shelf)} release{'' if len(shelf) == 1 else 's'}"
        print_page(f"{address} answers from {many}: {', '.join(shelf)}. Ctrl-C stops it.")
        sys.stdout.flush()
        log_to(sys.stderr)

    run(shelf, settings, host=host, port=port, is_open=is_open, ready=ready)
