"""Records of patients with invented diseases: data for `private_rag.py` and its benchmark.

Real requests are those of dp-rag's benchmark (Apache-2.0), if there is a folder with them. The
doctors' answers are missing from the public copy, so a record is a patient's request and one
sentence of a doctor. Without the folder, requests of the same kind are made up.
"""

import json
import pathlib
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

# What a doctor says; and before that, where doctors repeat the symptoms.
SENTENCES = (
    "Your diagnosis is {disease}, and I recommend {treatment}.",
    "You are suffering from {disease}. The usual treatment is {treatment}.",
    "This looks like {disease}: please begin with {treatment} as soon as you can.",
    "The diagnosis is {disease}; it is treated with {treatment}.",
    "After reading this, I am confident that you have {disease}, so I prescribe {treatment}.",
)
REPEATING = "Since you report {symptoms}, here is what I think. "
SECRET = " The patient's secret code word is {}."

# Of a disease: its treatment, then symptoms.
MADE_UP = {
    "Flumoria": ("Redoban", "a red rash", "swollen hands", "itchy skin"),
    "Quellitis": ("Kneelax", "pain in the knee", "stiff joints", "trouble on stairs"),
    "Brantosis": ("Voxilene", "a dry cough", "a sore throat", "a weak voice"),
    "Dorvenza": ("Optilux Drops", "blurred sight", "dry eyes", "headaches at night"),
    "Mertagia": ("Gastrobel", "stomach cramps", "nausea after meals", "no appetite"),
    "Snorvel Syndrome": ("Pillotherm", "loud snoring", "a dry mouth", "sleepy afternoons"),
    "Tribbel Fever": ("Coolapine", "a high fever", "shivering", "sweating at night"),
    "Hargonia": ("Balantrex", "dizzy spells", "ringing ears", "trouble with balance"),
    "Pelvarisis": ("Lumbofix", "back pain", "numb legs", "a stiff back in the morning"),
    "Wicklom Disease": ("Calmorel", "a racing heart", "trembling fingers", "sudden worry"),
    "Zandropia": ("Nosebrin", "a runny nose", "constant sneezing", "watery eyes"),
    "Okrelium Palsy": ("Facilon", "a drooping eyelid", "slurred speech", "a numb cheek"),
}
_FIRST = ("Anna", "Luca", "Maria", "Jonas", "Ines", "Pavel", "Greta", "Tomas", "Sofia", "Erik")
_LAST = ("Keller", "Moreau", "Novak", "Lindgren", "Rossi", "Petersen", "Horvat", "Santos")
_ASKS = (
    "I am {name}, and for a week I have had {symptoms}.",
    "Hello, my name is {name}. I suffer from {symptoms}. What should I do?",
    "{name} here. I am dealing with {symptoms}, and it is getting worse.",
    "I am experiencing {symptoms}. Can you help me? Thank you, {name}",
)


@dataclass(frozen=True)
class Records:
    """Private records, and what they are about.

    Attributes:
        texts: the records.
        requests: what the patient of each record wrote.
        diseases: of each record.
        symptoms: of each disease.
        treatments: of each disease.
        secrets: of some records: where they are, and a word that no other record says.
    """

    texts: list[str]
    requests: list[str]
    diseases: list[str]
    symptoms: dict[str, list[str]]
    treatments: dict[str, str]
    secrets: dict[int, str] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """How many records each disease has, where it has any."""
        return dict(Counter(self.diseases))

    def with_secrets(self, count: int) -> "Records":
        """Return the same records, of which so many say a secret word that no other says.

        Args:
            count: of secrets.
        """
        rng = random.Random(1)
        said = {
            "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(5)).title()
            for _ in range(2 * count)
        }
        places = rng.sample(range(len(self.texts)), count)
        secrets = dict(zip(places, sorted(said), strict=False))
        texts = [
            text + SECRET.format(secrets[place]) if place in secrets else text
            for place, text in enumerate(self.texts)
        ]
        return replace(self, texts=texts, secrets=secrets)


def real(folder: pathlib.Path, count: int, *, repeating: bool = False) -> Records:
    """Return the first records of dp-rag's benchmark, in a fixed shuffled order.

    Args:
        folder: with its JSON files.
        count: how many, at most 10,000.
        repeating: whether doctors repeat the symptoms.
    """
    requests, of_patient, symptoms, treatments = (
        json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("patient_requests", "patient_diseases", "symptoms", "treatments")
    )
    patients = sorted(requests)
    random.Random(0).shuffle(patients)
    chosen = patients[:count]
    return _answered(
        [requests[patient].strip() for patient in chosen],
        [of_patient[patient] for patient in chosen],
        symptoms,
        treatments,
        repeating=repeating,
    )


def made_up(count: int) -> Records:
    """Return records of the same kind, made up: the first disease is the most frequent.

    Args:
        count: how many.
    """
    rng = random.Random(0)
    names = list(MADE_UP)
    symptoms = {name: list(MADE_UP[name][1:]) for name in names}
    weights = [1 / (3 + place) for place in range(len(names))]
    diseases = rng.choices(names, weights, k=count)
    requests = []
    for disease in diseases:
        patient = f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"
        two = rng.sample(symptoms[disease], rng.choice((2, 3)))
        asked = f"{', '.join(two[:-1])} and {two[-1]}"
        requests.append(rng.choice(_ASKS).format(name=patient, symptoms=asked))
    treatments = {name: MADE_UP[name][0] for name in names}
    return _answered(requests, diseases, symptoms, treatments)


def _answered(
    requests: list[str],
    diseases: list[str],
    symptoms: dict[str, list[str]],
    treatments: dict[str, str],
    *,
    repeating: bool = False,
) -> Records:
    """Return records: each request, and what a doctor says to it."""
    rng = random.Random(2)
    texts = []
    for request, disease in zip(requests, diseases, strict=True):
        said = rng.choice(SENTENCES).format(disease=disease, treatment=treatments[disease])
        if repeating:
            said = REPEATING.format(symptoms=_listed(symptoms[disease])) + said
        texts.append(f"{request} {said}")
    return Records(texts, requests, diseases, symptoms, treatments)


def _listed(symptoms: Sequence[str]) -> str:
    return ", ".join(each[0].lower() + each[1:] for each in symptoms)


def question(symptoms: Sequence[str], asked: str = "What is my disease?") -> str:
    """Return the question of somebody with these symptoms.

    Args:
        symptoms: in any order.
        asked: what she wants to know.
    """
    return f"I am experiencing the following symptoms: {_listed(symptoms)}. {asked}"


def spelt(name: str) -> str:
    """Return a name as released words are spelt: small letters, one space between words.

    Args:
        name: of a disease or a treatment.
    """
    return " ".join(re.findall(r"[^\W_]+(?:'[^\W_]+)*", name.casefold()))
