"""What do documents like this question say? Answers from a private corpus, never a document of it.

A retrieval system keeps an embedding of each document beside what it says. Here: 30,000 made-up
support tickets, and what solved each. A question is embedded, too; it attends to all tickets, and
the answer is the share of each solution among tickets like the question, with a standard error.
Look for: the likeliest solution, which is mostly the exact one; and the question that no ticket is
like, whose answer is not clear of its standard error.

The encoder is a toy with public word vectors, which looks at one text alone; yours would be a
sentence encoder. Tickets are private, and so are their embeddings and solutions.
"""

import argparse
import functools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import discreet
from discreet.noise import Entropy
from discreet.readers.attention import comparison as oracle

DELTA, DIM = 1e-6, 12
SOLUTIONS = ("restart it", "new battery", "reset password", "reinstall", "refund", "call back")
# What people write about, how, and how likely each of the six solutions then helps.
THEMES = (
    ("phone screen frozen black dark update stuck", (0.7, 0.1, 0.0, 0.2, 0.0, 0.0)),
    ("battery empty dies charging cable hot hours", (0.1, 0.7, 0.0, 0.0, 0.2, 0.0)),
    ("login password account locked code email", (0.0, 0.0, 0.8, 0.1, 0.0, 0.1)),
    ("app crashes opening error version install", (0.2, 0.0, 0.0, 0.7, 0.0, 0.1)),
    ("invoice charged twice money payment wrong", (0.0, 0.0, 0.1, 0.0, 0.7, 0.2)),
    ("delivery parcel late address courier missing", (0.0, 0.0, 0.0, 0.0, 0.4, 0.6)),
)
FILLERS = "please help since yesterday again today thanks still nothing works"
QUESTIONS = (
    "screen stays black since the update",
    "battery dies after two hours",
    "locked out of my account, no code by email",
    "error when opening the new version of the app",
    "charged twice on one invoice",
    "parcel is late and the courier has no address",
    "a recipe for lemon cake",
)


@dataclass(frozen=True)
class Answer:
    """Shares of the solutions among tickets like a question: private, its ±, and exact."""

    question: str
    private: np.ndarray
    stderr: np.ndarray
    exact: np.ndarray

    @property
    def clear(self) -> bool:
        """Whether the first solution leads the second by two standard errors of both."""
        second, first = np.argsort(self.private)[-2:]
        return bool(
            self.private[first] - self.private[second]
            > 2 * np.hypot(self.stderr[first], self.stderr[second])
        )

    @property
    def right(self) -> bool:
        """Whether the likeliest solution is the exact one."""
        return bool(np.argmax(self.private) == np.argmax(self.exact))


@functools.cache
def word_vector(word: str) -> np.ndarray:
    """Return a public vector: words of one theme have much in common, all others nothing."""
    direction = np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIM)
    theme = [word in words.split() for words, _ in THEMES]
    return direction / np.sqrt(DIM) + np.array(theme, dtype=float) @ np.eye(len(THEMES), DIM)


def embed(texts: Sequence[str]) -> np.ndarray:
    """Return embeddings of length one: each text alone, no statistic of the others."""
    sums = np.array([sum(map(word_vector, text.split())) for text in texts])
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def make_tickets(count: int) -> tuple[list[str], np.ndarray]:
    """Return texts and solutions (as numbers) of so many tickets."""
    rng = np.random.default_rng(0)
    themes = rng.integers(len(THEMES), size=count)
    said, filled = rng.random((count, 4)), rng.random((count, 2))
    texts = []
    for i, theme in enumerate(themes):
        words, fillers = THEMES[theme][0].split(), FILLERS.split()
        chosen = [words[int(each * len(words))] for each in said[i]]
        texts.append(
            " ".join([*chosen, *(fillers[int(each * len(fillers))] for each in filled[i])])
        )
    chances = np.cumsum([chance for _, chance in THEMES], axis=1)[themes]
    return texts, np.sum(rng.random((count, 1)) > chances, axis=1)


def ask(tickets: int, epsilon: float, entropy: Entropy | None = None) -> list[Answer]:
    """Return what a memory of so many tickets answers, beside exact attention (NOT private)."""
    texts, solutions = make_tickets(tickets)
    keys, values = embed(texts), np.eye(len(SOLUTIONS))[solutions]
    # A customer with many tickets is protected as one by `groups=`. `rows_hint` is a public round
    # figure (here an option of the script), from which the temperature follows.
    memory = discreet.build(
        keys, values, epsilon=epsilon, delta=DELTA, rows_hint=tickets, entropy=entropy
    )
    queries = embed(QUESTIONS)
    private, stderr = memory.attend(queries, stderr=True)
    exact = oracle.attention(queries, keys, values, scale=memory.scale)
    return list(map(Answer, QUESTIONS, private, stderr, exact))


def conclusion(answers: Sequence[Answer], epsilon: float) -> str:
    """Return what the answers are worth, in a sentence."""
    clear = [each for each in answers if each.clear]
    right = sum(each.right for each in clear)
    return (
        f"at ε = {epsilon:g}, {len(clear)} of {len(answers)} questions have a solution that leads "
        f"by two standard errors, and "
        + ("it is the exact one each time" if right == len(clear) else f"it is right {right} times")
        + f"; questions without a clear answer: {len(answers) - len(clear)}."
    )


def main(arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None) -> list[Answer]:
    """Run the example, and return the answers that it prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tickets", type=int, default=30_000, help="default: 30,000")
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args(arguments)

    answers = ask(options.tickets, options.epsilon, entropy)
    print(
        f"{options.tickets:,} private tickets; the two likeliest solutions (exact: NOT private)\n"
    )
    for each in answers:
        print(each.question)
        for i in np.argsort(-each.private)[:2]:
            share = f"{each.private[i]:4.0%} ± {each.stderr[i]:.0%} (exact {each.exact[i]:.0%})"
            print(f"    {SOLUTIONS[i]:<16}{share}")
        if not each.clear:
            print("    not clear: the second is within two standard errors of the first")
    print(f"\nConclusion: {conclusion(answers, options.epsilon)}")
    return answers


if __name__ == "__main__":
    main()
