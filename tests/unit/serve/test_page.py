"""The page for people is one fixed text: it loads nothing, trusts nothing and knows no release."""

import base64
import hashlib
import json
import re

from markup import Reader

from discreet.serve.page import docs_page, home_page
from discreet.serve.routes import ROUTES, openapi


def inline(html, kind):
    return re.findall(rf"<{kind}>(.*?)</{kind}>", html, re.DOTALL)


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_browser_may_run_what_is_on_the_page_and_nothing_else():
    for sheet in (home_page(), docs_page(openapi())):
        rules = dict(each.strip().split(" ", 1) for each in sheet.policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["connect-src"] == "'self'"
        for kind in ("style", "script"):
            found = inline(sheet.html, kind)
            assert rules.get(f"{kind}-src", "").split() == [digest(each) for each in found]
            assert sheet.html.count(f"<{kind}") == len(found)
        assert "style=" not in sheet.html  # which the policy would not let in


def test_the_page_loads_nothing_from_elsewhere():
    reader = Reader(home_page().html)
    for tag in ("img", "iframe", "object", "base", "form"):
        assert not [each for each in reader.all(tag) if "src" in each or "action" in each]
    assert [each["href"] for each in reader.all("link")] == ["data:,"]
    assert {each["href"] for each in reader.all("a")} == {"docs"}
    assert not re.findall(r"https?://", home_page().html)


def test_nothing_that_comes_is_read_as_html_or_as_a_program():
    [script] = inline(home_page().html, "script")
    for never in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert never not in script
    assert re.search(r"localStorage|sessionStorage|cookie", script) is None


def test_every_element_that_the_script_wants_is_there():
    html = home_page().html
    [script] = inline(html, "script")
    made = set(re.findall(r"id: \"(\w+)\"", script)) | {"of"}
    for name in set(re.findall(r"at\(\"(\w+)\"\)", script)) - made:
        assert f'id="{name}"' in html, name


def test_the_description_is_html_of_what_programs_read():
    text = Reader(docs_page(json.loads(json.dumps(openapi()))).html).text
    for path, methods in openapi()["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in text


def test_each_question_is_shown_once_as_a_command():
    text = Reader(docs_page(openapi()).html).text
    asked = [each for each in ROUTES if each.fields is not None]
    for each in asked:
        assert each.example.keys() <= each.fields.keys()
        assert f"-d '{json.dumps(each.example)}'" in text
        assert f"/v1/NAME/{each.name} -H" in text
    assert text.count("curl ") == len(asked)
    assert "\N{REPLACEMENT CHARACTER}" not in text


def test_the_promise_is_on_the_page_in_plain_words():
    text = " ".join(Reader(home_page().html).text.split())
    assert "no question costs anybody's privacy" in text
    assert "the server counts no budget" in text
