"""Private context in models, measured: docs/models/applications.md.

Run: python benchmarks/models.py (about five minutes on one core; needs torch, scikit-learn and
matplotlib; the system prompt also pip install -c constraints.txt -e '.[examples]'). It prints the
measured part of the page and, with --write, puts it there, with a picture. --quick has few rows and
no texts.

- One attention layer over real rows: tokens of film reviews as a sentence encoder gives them, and
  quarters of handwritten digits. One head of 16 numbers; queries are rows of other texts and
  pictures. The layer is not trained: queries and keys have one random projection, so that like
  attends to like.
- Error: how far private answers are from exact ones, over how much exact ones differ from query to
  query (roots of mean squares). 1 is what the same answer for all queries would have.
- The noise is `discreet.testing.Seeded`, so that a run can be made again.
"""

import argparse
import pathlib
import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from sharing import ROOT, example, replaced, table, tell
from torch import nn

import discreet
from discreet import pictures
from discreet.nn import BoundedAttention, PrivateCrossAttention, from_multihead
from discreet.paper import DPCrossAttention
from discreet.testing import Seeded

PAGE = ROOT / "docs" / "models" / "applications.md"
PICTURE = "paper.png"
DELTA = 1e-6
WIDTH = 16
TEMPERATURES = (1.0, 2.0, 4.0)
EPSILONS = (1.0, 4.0, 16.0)
PROMPT = 1_700  # tokens, as in the paper

Floats = NDArray[np.floating]


def layer(width: int, logit: float) -> BoundedAttention:
    """Return an attention layer in which like attends to like, at a temperature."""
    torch.manual_seed(0)
    made = BoundedAttention(width, 1, head_dim=WIDTH, largest_logit=2 * logit)
    with torch.no_grad():
        made.k_proj.weight.copy_(made.q_proj.weight)
        made.out_proj.weight.copy_(torch.eye(width)[:, :WIDTH])
    return made.eval()  # the temperature starts at half of the largest logit


def error(
    context: Floats, asked: Floats, *, logit: float, epsilon: float, builds: int, **options: object
) -> float:
    """Return the error of private answers over the spread of exact ones."""
    attention = layer(context.shape[1], logit)
    rows, queries = (torch.from_numpy(np.asarray(each)).float() for each in (context, asked))
    with torch.no_grad():
        exact = attention(queries, rows)[0]
        apart = []
        for seed in range(builds):
            private = from_multihead(
                attention, rows, epsilon=epsilon, delta=DELTA, entropy=Seeded(seed), **options
            )
            apart.append((private(queries)[0] - exact).square().mean())
    spread = (exact - exact.mean(dim=0)).square().mean()
    return float((torch.stack(apart).mean() / spread).sqrt())


def tokens(count: int) -> tuple[Floats, Floats]:
    """Return token vectors of reviews, centred: those to attend to, and 500 to ask with."""
    embeddings = example("review_embeddings")
    encoder = embeddings._encoder(256)  # noqa: SLF001 (of the same repository)
    texts, _ = embeddings._read("imdb", 200)  # noqa: SLF001
    found: list[Floats] = []
    total = 0
    for text in texts:
        found.append(encoder.encode(text, output_value="token_embeddings").numpy())
        total += len(found[-1])
        if total >= count + 500:
            break
    rows = np.concatenate(found)[: count + 500]
    public, private = rows[:500], rows[500:]
    mean = public.mean(axis=0)  # the mean of public rows, taken out of all
    return private - mean, public - mean


def quarters() -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return quarters of digits, centred, those to ask with, and the picture of each."""
    from sklearn.datasets import load_digits

    images = load_digits().images
    cut = images.reshape(-1, 2, 4, 2, 4).swapaxes(2, 3).reshape(-1, 4, 16) / 16
    public, private = cut[:150], cut[150:]
    mean = public.mean(axis=(0, 1))
    groups = np.repeat(np.arange(len(private)), 4)
    return private.reshape(-1, 16) - mean, public.reshape(-1, 16) - mean, groups


def grid(
    context: Floats, asked: Floats, sizes: list[int], *, builds: int, groups: object = None
) -> list[str]:
    """Return a table of errors: rows or records by ε, at the best of three temperatures."""
    body = []
    for size in sizes:
        cells = []
        for epsilon in EPSILONS:
            options = {} if groups is None else {"groups": groups[:size], "group_rows": 4.0}
            errors = [
                error(context[:size], asked, logit=t, epsilon=epsilon, builds=builds, **options)
                for t in TEMPERATURES
            ]
            best = int(np.argmin(errors))
            cells.append(f"{errors[best]:.2f} ({TEMPERATURES[best]:g})")
            tell(f"{size:,} rows, ε = {epsilon:g}: {errors}")
        count = size if groups is None else size // 4
        body.append([f"{count:,}", *cells])
    unit = "tokens" if groups is None else "pictures"
    return table([unit, *(f"ε = {each:g}" for each in EPSILONS)], body)


class Served(nn.Module):
    """The same attention layer, answered by somebody else: a structure of the paper."""

    def __init__(self, asks: nn.Module, structure: DPCrossAttention) -> None:
        super().__init__()
        self.asks, self.structure = asks, structure

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return its answers."""
        queries = self.asks(inputs).double().numpy()
        return torch.from_numpy(self.structure.query(queries)), None


def _served(
    keys: Floats, values: Floats, asks: nn.Module, epsilon: float, seed: int
) -> dict[str, nn.Module]:
    """Return one layer, served by the memory and by trees."""
    memory = discreet.build(
        keys,
        values,
        epsilon=epsilon,
        delta=DELTA,
        neighbours="replace",
        scale=0.5,
        key_norm=2**0.5,
        query_norm=2**0.5,
        value_norm=2**0.5,
        eps_s=1e-3,
        entropy=Seeded(seed),
    )
    tight, paper = (
        DPCrossAttention(
            keys,
            values,
            upper=1.0,
            value_bound=1.0,
            epsilon=epsilon,
            delta=DELTA / 2,
            delta_prime=DELTA / 2,
            c=0.1,
            eps_s=0.05,
            p_f=0.1,
            accounting=accounting,
            entropy=Seeded(seed),
        )
        for accounting in ("tight", "paper")
    )
    return {
        "memory": PrivateCrossAttention(memory, q_proj=asks, batch_first=True),
        "trees, tight accounting": Served(asks, tight),
        "trees, the paper's accounting": Served(asks, paper),
    }


def beside_the_paper(rows: int, builds: int) -> tuple[list[float], dict[str, list[float]]]:
    """Return the error of one small layer against ε: memory, trees, and one answer for all."""
    torch.manual_seed(1)
    squash = nn.Sequential(nn.Linear(8, 2), nn.Sigmoid()).requires_grad_(requires_grad=False)
    squash[0].weight.mul_(8)
    inputs, asked = torch.randn(rows, 8), torch.randn(256, 8)
    keys = squash(inputs).double().numpy()
    values = np.stack([np.sin(3 * keys[:, 0]), 2 * keys[:, 1] - 1], axis=1)
    queries = squash(asked).double().numpy()
    weights = np.exp(queries @ keys.T / 2)
    exact = weights @ values / weights.sum(axis=1, keepdims=True)
    epsilons = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    names = ("memory", "trees, tight accounting", "trees, the paper's accounting")
    found: dict[str, list[float]] = {name: [] for name in names}
    for epsilon in epsilons:
        squares = {name: [] for name in found}
        for seed in range(builds):
            for name, module in _served(keys, values, squash, epsilon, seed).items():
                out = module(asked)[0].detach().double().numpy()
                squares[name].append(np.mean((out - exact) ** 2))
        for name, each in squares.items():
            found[name].append(float(np.sqrt(np.mean(each))))
    constant = float(np.sqrt(np.mean((exact - exact.mean(axis=0)) ** 2)))
    return epsilons, {**found, "one answer for all": [constant] * len(epsilons)}


def draw(epsilons: list[float], found: dict[str, list[float]], path: pathlib.Path) -> None:
    """Write the picture of errors against ε."""
    figure = pictures.errors_of_mechanisms(
        {name: pictures.Curve(epsilons, errors) for name, errors in found.items()},
        title="One layer, served in four ways",
    )
    pictures.save(figure, path)


def page(*, quick: bool, texts: bool, folder: pathlib.Path | None) -> list[str]:
    """Return the measured part of the page."""
    builds = 1 if quick else 5
    lines: list[str] = ["", "### A system prompt: a row is a token"]
    if texts:
        context, asked = tokens(PROMPT * 10)
        lines += grid(context, asked, [PROMPT, PROMPT * 10], builds=builds)
        whole = error(
            context[:PROMPT],
            asked,
            logit=2.0,
            epsilon=4.0,
            builds=builds,
            groups=np.zeros(PROMPT, dtype=int),
        )
        lines += [f"The whole prompt as one record, ε = 4: {whole:.2f}.", ""]
    lines += ["### Guided diffusion: an image is the record"]
    context, asked, groups = quarters()
    sizes = [400] if quick else [400, 1600, 6400]
    lines += grid(context, asked, sizes, builds=builds, groups=groups)
    rows = 512 if quick else 4096
    epsilons, found = beside_the_paper(rows, builds)
    body = [[name, *(f"{each:.3g}" for each in errors)] for name, errors in found.items()]
    lines += ["### The paper's trees beside it", ""]
    lines += [f"{rows:,} rows, 2 numbers a head, keys and queries in [0, 1], replace neighbours:"]
    lines += table(["error", *(f"ε = {each:g}" for each in epsilons)], body)
    if folder is not None:
        draw(epsilons, found, folder / PICTURE)
    return lines


def main() -> None:
    """Measure, print, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, and no texts")
    parser.add_argument("--write", action="store_true", help=f"put it into {PAGE.name}")
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)  # trees say that their answers are noise
    torch.set_num_threads(1)
    lines = page(
        quick=options.quick,
        texts=not options.quick,
        folder=PAGE.parent if options.write else None,
    )
    print("\n".join(lines))
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(replaced(text, "models", "\n".join(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
