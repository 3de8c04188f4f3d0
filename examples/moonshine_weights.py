"""Moonshine-tiny, a small speech recogniser that was trained on real speech, as a torch model.

Weights, tokenizer and recordings ship inside the wheel of `moonshine-voice` 0.0.73 (MIT licence):

    pip install --no-deps moonshine-voice==0.0.73

`load` reads them where pip put them. It runs nothing of the package, and it downloads and writes
nothing. Encoder and decoder are two ONNX Runtime files (`.ort`) with weights of 8 bits; they become
float32 weights of transformers' `MoonshineForConditionalGeneration`. Run this file to read what is
said in the recordings. `pretrained_speech.py` uses it.
"""

import importlib.util
import math
import pathlib
import re
import struct
import sys
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from scipy.signal import resample_poly
from transformers import MoonshineConfig, MoonshineForConditionalGeneration

RATE = 16_000  # samples a second, which the encoder was trained on
TOKENS_PER_SECOND = 6.5  # nobody speaks faster; a longer answer is a loop
# Files with speech in them, and seconds. The longest is cut at a pause, and where the speech ends.
RECORDINGS = (
    ("clone-test", 0.0, 4.1),
    ("beckett", 0.0, 10.0),
    ("endgame_nagg_nell", 0.0, 28.3),
    ("two_cities", 0.0, 20.9),
    ("two_cities", 20.9, 42.0),
)
MISSING = "Weights and recordings are missing: pip install --no-deps moonshine-voice==0.0.73"

NAMED = re.compile(r"([\w.]+\.(?:weight|bias))(?:_merged_\d+|_add_tensor)?(?:_quantized)?")
TYPES = {1: "<f4", 2: "u1", 6: "<i4", 7: "<i8"}  # ONNX's numbers for the types of tensors


@dataclass(frozen=True)
class Table:
    """A table of a flatbuffer: bytes, and where in them the table starts.

    At the start stands how far back its directory is. That says where in the table each field of
    the schema is; zero, or nothing, if it was left out. Strings, vectors and tables are elsewhere:
    their field says how much further on.
    """

    data: bytes
    start: int

    def place(self, field: int) -> int | None:
        """Return where a field is, None if it was left out."""
        directory = self.start - struct.unpack_from("<i", self.data, self.start)[0]
        entry = 4 + 2 * field  # after two lengths
        if entry >= struct.unpack_from("<H", self.data, directory)[0]:
            return None
        offset = struct.unpack_from("<H", self.data, directory + entry)[0]
        return self.start + offset if offset else None

    def target(self, field: int) -> int | None:
        """Return where the string, vector or table of a field is, None if it was left out."""
        place = self.place(field)
        return None if place is None else place + _uint32(self.data, place)

    def table(self, field: int) -> Self | None:
        """Return a table."""
        target = self.target(field)
        return None if target is None else type(self)(self.data, target)

    def text(self, field: int) -> str:
        """Return a string."""
        return self.array(field, "u1").tobytes().decode()

    def array(self, field: int, dtype: str) -> np.ndarray:
        """Return a vector of numbers, without a copy."""
        target = self.target(field)
        if target is None:
            return np.empty(0, dtype)
        return np.frombuffer(self.data, dtype, _uint32(self.data, target), target + 4)

    def tables(self, field: int) -> Iterator[Self]:
        """Yield the tables of a vector."""
        for place in self._places(field):
            yield type(self)(self.data, place)

    def texts(self, field: int) -> list[str]:
        """Return the strings of a vector."""
        starts = [(place + 4, _uint32(self.data, place)) for place in self._places(field)]
        return [self.data[start : start + length].decode() for start, length in starts]

    def _places(self, field: int) -> Iterator[int]:
        first = (self.target(field) or 0) + 4
        for index, offset in enumerate(self.array(field, "<u4")):
            yield first + 4 * index + int(offset)


@dataclass(frozen=True)
class Tokenizer:
    """The pieces of text that the decoder's numbers stand for. It only decodes."""

    pieces: tuple[bytes, ...]

    @classmethod
    def read(cls, path: pathlib.Path) -> Self:
        """Read pieces, each after its length: one byte, or two from 128 on, the lower first."""
        data, pieces, at = path.read_bytes(), [], 0
        while at < len(data):
            length, at = data[at], at + 1
            if length >= 128:
                length, at = length - 128 + 128 * data[at], at + 1
            pieces.append(data[at : at + length])
            at += length
        return cls(tuple(pieces))

    def decode(self, tokens: torch.Tensor | list[int]) -> str:
        """Return the text of one sequence, without start, end and other special tokens."""
        numbers = tokens.tolist() if isinstance(tokens, torch.Tensor) else tokens
        kept = (self.pieces[number] for number in numbers if 3 <= number < 32_000)
        return b"".join(kept).decode(errors="replace").replace("\u2581", " ").strip()


def load() -> tuple[MoonshineForConditionalGeneration, Tokenizer, list[tuple[str, np.ndarray]]]:
    """Return model, tokenizer, and recordings: names and float32 waveforms at 16 kHz.

    Exits with a message if the package is not installed, or is a version without weights.
    """
    spec = importlib.util.find_spec("moonshine_voice")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(MISSING)
    assets = pathlib.Path(spec.submodule_search_locations[0]) / "assets"
    folder = assets / "tiny-en"
    if not folder.is_dir():
        sys.exit(MISSING)
    encoder = _weights(folder / "encoder_model.ort", prefix="model.encoder.")
    decoder = _weights(folder / "decoder_model_merged.ort")
    model = MoonshineForConditionalGeneration(MoonshineConfig(max_position_embeddings=194))
    model.load_state_dict({**dict(encoder), **dict(decoder)})  # it raises if a name is not matched
    recordings = [
        (name, _waveform(assets / f"{name}.wav")[int(start * RATE) : int(end * RATE)])
        for name, start, end in RECORDINGS
    ]
    return model.eval(), Tokenizer.read(folder / "tokenizer.bin"), recordings


def transcribe(model: MoonshineForConditionalGeneration, waveform: np.ndarray) -> torch.Tensor:
    """Return the tokens of the transcript, the likeliest at each step, with start and end."""
    sound = torch.from_numpy(waveform)[None]
    limit = math.ceil(TOKENS_PER_SECOND * len(waveform) / RATE)
    with torch.inference_mode():
        return model.generate(sound, do_sample=False, num_beams=1, max_new_tokens=limit)[0]


def _weights(path: pathlib.Path, *, prefix: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield names and float32 numbers of all weights of an `.ort` file.

    Biases, norms and convolutions have the names of the torch modules that they came from. Matrices
    have a number instead, but the operation that multiplies by one is called after the module.

    Fields go by their numbers in ONNX Runtime's schema. File: 1 model. Model: 7 graph. Graph:
    0 tensors, 2 nodes. Node: 0 name, 8 inputs, 10 attributes. Attribute: 7 graph. Tensor: 0 name,
    2 shape, 3 type, 4 bytes.
    """
    data = path.read_bytes()
    model = Table(data, _uint32(data, 0)).table(1)
    graph = None if model is None else model.table(7)
    if graph is None:
        raise ValueError(f"{path} has no graph")
    parts = list(_graphs(graph))
    tensors: dict[str, np.ndarray] = {}
    for part in parts:
        tensors |= {tensor.text(0): _array(tensor) for tensor in part.tables(0)}
    for name in tensors:
        # "layers.0.mlp.fc1.bias_merged_0", "conv1.weight_add_tensor", "norm.weight"
        found = NAMED.fullmatch(name)
        if found:
            yield prefix + found[1], _floats(tensors, name)
    for part in parts:
        for node in part.tables(2):
            # "/layers.0/self_attn/q_proj/MatMul_quant", "/groupnorm/Mul"
            *modules, operation = node.text(0).strip("/").split("/")
            used = [name for name in node.texts(8) if name in tensors]
            if operation == "MatMul_quant":
                matrix = next(name for name in used if name.endswith("_quantized"))
                yield prefix + ".".join([*modules, "weight"]), _floats(tensors, matrix).T
            elif modules == ["groupnorm"] and operation in ("Mul", "Add"):
                kind = {"Mul": "weight", "Add": "bias"}[operation]
                yield f"{prefix}groupnorm.{kind}", _floats(tensors, used[0]).flatten()


def _graphs(graph: Table) -> Iterator[Table]:
    """Yield a graph and those inside it: the decoder has one for its first step, one for others."""
    yield graph
    for node in graph.tables(2):
        for attribute in node.tables(10):
            inner = attribute.table(7)
            if inner is not None:
                yield from _graphs(inner)


def _array(tensor: Table) -> np.ndarray:
    """Return the numbers of a tensor as they are stored."""
    place = tensor.place(3)
    kind = 0 if place is None else _uint32(tensor.data, place)
    shape: list[int] = tensor.array(2, "<i8").tolist()
    return tensor.array(4, "u1").view(TYPES[kind]).reshape(shape)


def _floats(tensors: dict[str, np.ndarray], name: str) -> torch.Tensor:
    """Return a weight as float32. From bytes: less their zero point, times their scale."""
    values = tensors[name].astype(np.float32)
    if name.endswith("_quantized"):
        stem = name.removesuffix("_quantized")
        values = (values - tensors[f"{stem}_zero_point"]) * tensors[f"{stem}_scale"]
    return torch.from_numpy(values)


def _waveform(path: pathlib.Path) -> np.ndarray:
    """Return a recording of one channel and 16 bits as float32 in [-1, 1], at 16 kHz."""
    with wave.open(str(path)) as file:
        if (file.getnchannels(), file.getsampwidth()) != (1, 2):
            raise ValueError(f"{path} is not a recording of one channel and 16 bits")
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32_768
    common = math.gcd(RATE, rate)
    resampled: np.ndarray = resample_poly(samples, RATE // common, rate // common)
    return resampled.astype(np.float32)


def _uint32(data: bytes, place: int) -> int:
    return int(struct.unpack_from("<I", data, place)[0])


def main() -> None:
    """Transcribe the recordings."""
    model, tokenizer, recordings = load()
    for name, waveform in recordings:
        print(f"{name}, {len(waveform) / RATE:.1f} s")
        print(f"{tokenizer.decode(transcribe(model, waveform))}\n")


if __name__ == "__main__":
    main()
