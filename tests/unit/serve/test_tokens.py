"""Who may ask: tokens that are known, and nobody else; and the file that has their hashes."""

import hashlib

import pytest
from starlette.testclient import TestClient

import discreet
from discreet.serve import Settings, Shelf, Tokens, application, new_token
from discreet.serve.routes import ROUTES
from discreet.serve.tokens import hash_of

# The same in each process that collects tests.
TOKENS = [(token, hash_of(token)) for token in ("aB3" * 14 + "x", "cD4" * 14 + "y", "eF5" * 14)]


@pytest.fixture(scope="module")
def closed(folder):
    settings = Settings(tokens=Tokens(tuple(line for _, line in TOKENS)))
    app = application(Shelf([folder / "memory.safetensors"]), settings)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_tokens_are_long_and_never_the_same():
    tokens = {new_token()[0] for _ in range(50)}
    assert len(tokens) == 50
    assert all(len(each) == 43 for each in tokens)
    token, line = new_token()
    assert line == hashlib.sha256(token.encode()).hexdigest()


@pytest.mark.parametrize("token", [token for token, _ in TOKENS])
def test_every_known_token_is_let_in(closed, token):
    assert closed.get("/v1", headers=bearer(token)).status_code == 200
    body = {"queries": [[0.1, 0.2, 0.3]]}
    assert closed.post("/v1/memory/attend", json=body, headers=bearer(token)).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKENS[0][0][:-1]}",
        f"Bearer {TOKENS[0][0]}x",
        f"Bearer {TOKENS[0][0].swapcase()}",
        f"Bearer {TOKENS[0][1]}",  # its hash
        f"Basic {TOKENS[0][0]}",
        TOKENS[0][0],
        f"Bearer {TOKENS[0][0]},{TOKENS[1][0]}",
        f"Bearer {TOKENS[0][0]}".encode() + b"\xff",
        "Bearer " + "a" * 10_000,
    ],
)
def test_everybody_else_is_not(closed, header):
    headers = {} if header is None else {"authorization": header}
    for each in ROUTES:
        response = closed.request(each.method, each.path.format(name="memory"), headers=headers)
        assert response.status_code == (200 if each.open else 401), each.path
        if not each.open:
            assert response.headers["www-authenticate"] == "Bearer"
            assert response.json()["error"].startswith("Expected a token")
    # Nor does anybody learn which names there are.
    assert closed.get("/v1/none", headers=headers).status_code == 401
    assert closed.get("/nothing", headers=headers).status_code == 401
    assert "memory" not in closed.get("/").text.partition("<script>")[0]
    assert "memory" not in closed.get("/health").text


def test_a_file_of_hashes_is_read(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# Ann\n{TOKENS[0][1]}\n\n  {TOKENS[1][1].upper()}  \n")
    assert Tokens.read(path).hashes == (TOKENS[0][1], TOKENS[1][1])


@pytest.mark.parametrize("line", [TOKENS[0][0], TOKENS[0][1][:-1], "hash # Ann", "é" * 64])
def test_a_line_that_is_no_hash_is_named_and_not_quoted(tmp_path, line):
    path = tmp_path / "tokens"
    path.write_text(f"{TOKENS[1][1]}\n{line}\n", encoding="utf-8")
    with pytest.raises(discreet.InvalidInput, match="Expected line 2") as refused:
        Tokens.read(path)
    assert line not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"# nobody\n", b"\xff\xfe"])
def test_a_file_without_hashes_lets_nobody_in(tmp_path, content):
    (tmp_path / "tokens").write_bytes(content)
    with pytest.raises(discreet.InvalidInput):
        Tokens.read(tmp_path / "tokens")
    with pytest.raises(discreet.InvalidInput):
        Tokens.read(tmp_path / "none")


def test_all_hashes_are_compared_whatever_is_given(monkeypatch):
    """In constant time, each: whether and where there is one is not to be told by a clock."""
    import hmac

    seen = []

    def compared(given, known):
        seen.append(known)
        return given == known

    monkeypatch.setattr(hmac, "compare_digest", compared)
    tokens = Tokens(tuple(line for _, line in TOKENS))
    tokens.check(f"Bearer {TOKENS[0][0]}")
    assert seen == list(tokens.hashes)


def test_hashes_are_in_no_repr():
    assert TOKENS[0][1] not in repr(Settings(tokens=Tokens((TOKENS[0][1],))))
