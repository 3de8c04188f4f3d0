"""The pages of the server: one for people, and one that describes the routes.

Both are fixed texts, made once: they hold nothing of any release. What is on the first comes by
requests like those of any other program, and goes into it as text, never as HTML.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from discreet.pages.sheet import escaped, sheet

_INLINE = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)
_FOOTER = (
    "Answers are computed from files with noise in them, which were made once. Asking costs no "
    "privacy, however often; the server counts no budget, for there is none to count."
)

_INTRODUCTION = """<h1>Asking over HTTP</h1>
<p class="lead">Numbers or words in, answers out, each number with its ±. The same for programs:
<a href="openapi.json">openapi.json</a>. And a <a href="./">page for people</a>.</p>
<p>Bodies are JSON in UTF-8, or streams of Arrow. Where the server has tokens, all but the pages and
<code>/health</code> take a header <code>Authorization: Bearer TOKEN</code>. What is wrong with a
request is said in one sentence, <code>{"error": "..."}</code>, with a status from 400 to 499.</p>
"""


@dataclass(frozen=True)
class Sheet:
    """A page, and what browsers may do with it.

    Attributes:
        html: the whole of it.
        policy: its Content-Security-Policy: this style and this script alone, and requests to the
            server that it came from.
    """

    html: str
    policy: str

    @classmethod
    def of(cls, html: str) -> "Sheet":
        """Return a page with a policy that allows what is in it.

        Args:
            html: the whole page.
        """
        found: dict[str, list[str]] = {"style": [], "script": []}
        for kind, content in _INLINE.findall(html):
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            found[kind].append(f"'sha256-{digest}'")
        rules = [
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "connect-src 'self'; img-src data:",
            *(f"{kind}-src {' '.join(each)}" for kind, each in found.items() if each),
        ]
        return cls(html, "; ".join(rules))


def home_page() -> Sheet:
    """Return the page for people."""
    html = sheet(
        title="Ask private data",
        body=f"{_part('html')}\n<script>{_part('js')}</script>",
        footer=_FOOTER,
        head=f"<style>\n{_part('css')}</style>",
    )
    return Sheet.of(html)


def docs_page(described: Mapping[str, Any]) -> Sheet:
    """Return the page that describes the routes.

    Args:
        described: as OpenAPI has it.
    """
    body = "\n".join([_INTRODUCTION, *_routes(described["paths"])])
    html = sheet(title="Asking over HTTP", body=body, footer=_FOOTER, head="")
    return Sheet.of(html)


def _part(suffix: str) -> str:
    return resources.files("discreet.serve").joinpath(f"page.{suffix}").read_text("utf-8")


def _routes(paths: Mapping[str, Any]) -> Iterator[str]:
    """Yield a heading for each route, and the fields of its body."""
    for path, methods in paths.items():
        for method, operation in methods.items():
            yield f"<h2><code>{method.upper()} {escaped(path)}</code></h2>"
            yield f"<p>{escaped(operation['summary'])}</p>"
            if "requestBody" in operation:
                body = operation["requestBody"]["content"]["application/json"]
                yield "<ul>"
                for name, each in body["schema"]["properties"].items():
                    meaning = escaped(each.get("description", ""))
                    yield f"<li><code>{name}</code> ({each['type']}): {meaning}</li>"
                yield "</ul>"
                yield f"<pre><code>{escaped(_curl(path, body['example']))}</code></pre>"


def _curl(path: str, body: object) -> str:
    """Return a command that asks, with NAME for that of a release."""
    return (
        f"curl http://127.0.0.1:8000{path.format(name='NAME')} "
        f"-H 'content-type: application/json' -d '{json.dumps(body)}'"
    )
