"""What answers each route. Who may ask, and what is counted, is the business of `app`."""

import asyncio
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from discreet.serve.asking import Answering, OfTexts
from discreet.serve.counted import LOG, Counted
from discreet.serve.limits import CLOSE, Limits, body_of
from discreet.serve.page import Sheet, docs_page, home_page
from discreet.serve.routes import ROUTES, Described, openapi
from discreet.serve.shelf import Shelf
from discreet.serve.tokens import Tokens
from discreet.serve.wire import ARROW, JSON, Refused, as_json, parsed

# Where the route of a request is kept, for whoever counts it.
ROUTE = "discreet.route"

_NOTE = "Answers are post-processing: any number of questions, and no budget is counted."


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How releases are served.

    Attributes:
        limits: on what a request may ask for.
        tokens: that are accepted; None if everybody may ask.
        hosts: names by which the server may be called, without ports; None for any.
        log_queries: whether what is asked is logged.
        threads: that compute answers.
    """

    limits: Limits = field(default_factory=Limits)
    tokens: Tokens | None = None
    hosts: frozenset[str] | None = None
    log_queries: bool = False
    threads: int = min(os.cpu_count() or 1, 8)


class Handlers:
    """What answers each route.

    Args:
        shelf: the releases.
        settings: who may ask, and how much.
    """

    def __init__(self, shelf: Shelf, settings: Settings) -> None:
        self.shelf, self.settings, self.counted = shelf, settings, Counted()
        self.pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="answers")
        self._described = as_json(openapi())
        self._sheets = {"page": home_page(), "docs": docs_page(openapi())}

    def router(self) -> Router:
        """Return what finds the right one."""
        return Router(
            [Route(each.path, self._endpoint(each), methods=[each.method]) for each in ROUTES],
            redirect_slashes=False,
        )

    def _endpoint(self, route: Described) -> Callable[[Request], Any]:
        async def respond(request: Request) -> Response:
            request.scope[ROUTE] = route.path
            if route.fields is not None:
                return await self._answered(route, request)
            if route.name in self._sheets:
                return _shown(self._sheets[route.name])
            made: Response = getattr(self, f"_{route.name}")(request)
            return made

        return respond

    async def _answered(self, route: Described, request: Request) -> Response:
        """Return the answers to a question in a body."""
        served = self._served(request)
        if served.verb != route.name:
            said = f"Expected POST /v1/NAME/{served.verb}, by which this release is asked."
            raise Refused(404, said, CLOSE)
        form = _form_of(request)
        body = await body_of(request, self.settings.limits)
        work = partial(self._computed, served, body, form)
        data, count = await asyncio.get_running_loop().run_in_executor(self.pool, work)
        self.counted.answers[route.path] += count
        return Response(data, media_type=form)

    def _computed(self, served: Answering, body: bytes, form: str) -> tuple[bytes, int]:
        """Return answers as bytes, and how many there are. In a thread."""
        if form == ARROW:
            from discreet.serve import arrow

            asked = arrow.asked(body, self.settings.limits)
        else:
            asked = parsed(body)
        if self.settings.log_queries:
            LOG.info("asked: %s", json.dumps(asked))
        answers = served.answer(asked, self.settings.limits)
        if form == ARROW:
            return arrow.written(answers), answers.count
        return as_json(answers.fields), answers.count

    def _served(self, request: Request) -> Answering:
        found = self.shelf.get(request.path_params["name"])
        if found is None:
            raise Refused(404, "Expected the name of a release, as GET /v1 lists them.", CLOSE)
        return found

    # --- what takes no body: by the names of routes -----------------------------------------------

    def _openapi(self, _: Request) -> Response:
        return Response(self._described, media_type=JSON)

    def _health(self, _: Request) -> Response:
        problems = len(self.shelf.problems)
        said = "ok" if not problems else "earlier releases answer: see GET /v1 for what is wrong"
        return _json({"status": said, "releases": len(self.shelf), "problems": problems})

    def _metrics(self, _: Request) -> Response:
        said = self.counted.prometheus(releases=len(self.shelf), problems=len(self.shelf.problems))
        return Response(said, media_type="text/plain; version=0.0.4")

    def _releases(self, _: Request) -> Response:
        listed = [self._of_name(name) for name in self.shelf]
        limits = {"queries": self.settings.limits.queries, "body": self.settings.limits.body}
        return _json({"releases": listed, "limits": limits, "note": _NOTE})

    def _about(self, request: Request) -> Response:
        self._served(request)
        return _json(self._of_name(request.path_params["name"]))

    def _of_name(self, name: str) -> dict[str, Any]:
        problem = self.shelf.problems.get(name)
        return {"name": name, **self.shelf[name].described(), "problem": problem}

    def _card(self, request: Request) -> Response:
        return _json(self._served(request).carded())

    def _topics(self, request: Request) -> Response:
        served = self._served(request)
        if not isinstance(served, OfTexts):
            raise Refused(404, "Expected a corpus: this release has no topics.")
        return _json(served.topics())


def _json(facts: dict[str, Any]) -> Response:
    return Response(as_json(facts), media_type=JSON)


def _shown(sheet: Sheet) -> Response:
    headers = {"content-security-policy": sheet.policy}
    return Response(sheet.html, media_type="text/html", headers=headers)


def _form_of(request: Request) -> str:
    """Return the form of a body, if it is one that is read here."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "Expected a body without content-encoding.", CLOSE)
    form, _, rest = request.headers.get("content-type", "").partition(";")
    form = form.strip().lower()
    charset = rest.strip().lower().replace('"', "")
    if form not in {JSON, ARROW} or (charset and charset != "charset=utf-8"):
        raise Refused(415, f"Expected content-type {JSON}, in UTF-8, or {ARROW}.", CLOSE)
    return form
