"""What can be asked for by HTTP: the routes, once, for the server and for its description."""

from dataclasses import dataclass
from typing import Any

from discreet._version import __version__
from discreet.serve.wire import ARROW, JSON

_QUERIES = {
    "type": "array",
    "description": "Lists of lists of numbers, all of one length: shape (..., d).",
    "items": {"type": "array", "items": {"type": "number"}},
}
_STDERR = {
    "type": "boolean",
    "default": True,
    "description": "Whether the standard error of each number comes with it: 1.96 of them hold 95% "
    "of the time.",
}
_ROWS = {
    "type": "array",
    "description": "Rows of a table, by the names of its columns; null for what is missing.",
    "items": {"type": "object"},
}
_MEMBER = {"type": "integer", "default": 0, "description": "Of the memories of a model: which one."}
_QUESTION = {
    "question": {"type": "string", "description": "In words."},
    "questions": {"type": "array", "items": {"type": "string"}, "description": "Or several."},
    "topic": {"type": "string", "description": "Or the name of one of its topics."},
    "topics": {"type": "integer", "default": 3, "description": "How many near topics are told."},
    "blank": {"type": "string", "description": "A sentence with ___ where the answer stands."},
}


@dataclass(frozen=True)
class Described:
    """A route.

    Attributes:
        path: with {name} for that of a release.
        name: of what answers it; of verbs, the verb itself.
        summary: what comes back, in a line.
        open: whether it takes no token.
        fields: of the body, if it has one.
        example: of a body.
    """

    path: str
    name: str
    summary: str
    open: bool = False
    fields: dict[str, Any] | None = None
    example: dict[str, Any] | None = None

    @property
    def method(self) -> str:
        """Of HTTP."""
        return "GET" if self.fields is None else "POST"


_ARRAYS = {"queries": _QUERIES, "stderr": _STDERR}
_TWO_NUMBERS = {"queries": [[0.5, 0.5]]}

ROUTES = (
    Described("/", "page", "A page for people: it asks for them.", open=True),
    Described("/docs", "docs", "This description, to read.", open=True),
    Described("/openapi.json", "openapi", "This description, for programs.", open=True),
    Described(
        "/health", "health", "Whether releases answer, and whether files are whole.", open=True
    ),
    Described("/metrics", "metrics", "Requests, answers and seconds, as Prometheus reads them."),
    Described("/v1", "releases", "All releases that are served here."),
    Described("/v1/{name}", "about", "What one is, what it promises, and how it is asked."),
    Described("/v1/{name}/card", "card", "Its card, with what each line means, and the guarantee."),
    Described("/v1/{name}/topics", "topics", "Of a corpus: all topics with counts, and names."),
    Described(
        "/v1/{name}/attend",
        "attend",
        "Of a memory: private attention.",
        fields={**_ARRAYS, "member": _MEMBER},
        example=_TWO_NUMBERS,
    ),
    Described(
        "/v1/{name}/predict",
        "predict",
        "Of a model: numbers, or labels with probabilities.",
        fields={**_ARRAYS, "rows": _ROWS},
        example={"rows": [{"age": 30, "job": None}]},
    ),
    Described(
        "/v1/{name}/query",
        "query",
        "Of distances: their sums from each point.",
        fields=_ARRAYS,
        example=_TWO_NUMBERS,
    ),
    Described(
        "/v1/{name}/ask",
        "ask",
        "Of a corpus: topics, shares of labels, words and names, each with a ±.",
        fields=_QUESTION,
        example={"question": "my card was stolen"},
    ),
)


def openapi() -> dict[str, Any]:
    """Return the description of the routes, as OpenAPI 3.1 has it."""
    paths: dict[str, Any] = {}
    for each in ROUTES:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "discreet",
            "version": __version__,
            "description": "Released files that answer any number of questions. Answers are "
            "post-processing: no question costs privacy, and the server counts no budget.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": {"type": "string", "description": "A sentence."}},
                }
            },
        },
    }


def _operation(each: Described) -> dict[str, Any]:
    wrong = {"$ref": "#/components/schemas/Error"}
    operation: dict[str, Any] = {
        "operationId": each.name,
        "summary": each.summary,
        "responses": {
            "200": _answered(each),
            "4XX": {
                "description": "What was wrong, in a sentence.",
                "content": {JSON: {"schema": wrong}},
            },
        },
        "security": [] if each.open else [{"token": []}, {}],
    }
    if "{name}" in each.path:
        operation["parameters"] = [
            {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    if each.fields is not None:
        schema = {"type": "object", "properties": each.fields, "additionalProperties": False}
        content: dict[str, Any] = {JSON: {"schema": schema, "example": each.example}, ARROW: {}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _answered(each: Described) -> dict[str, Any]:
    """Return what comes back: of a question, its answers, in the form that it had."""
    if each.fields is None:
        return {"description": each.summary}
    answers = {"description": "One for each query, row or question, in their shape."}
    properties: dict[str, Any] = {"answers": answers}
    if "stderr" in each.fields:
        properties["stderr"] = {
            "type": "array",
            "description": "The standard error of each number, in the same shape; of a classifier, "
            "of what `stderr_of` names. Not there where the file has no errors.",
        }
    schema = {"type": "object", "required": ["answers"], "properties": properties}
    return {"description": each.summary, "content": {JSON: {"schema": schema}, ARROW: {}}}
