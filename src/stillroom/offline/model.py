"""Two linear models, for sentences of the person and of the assistant. The score is one sum, through a logistic."""

from __future__ import annotations

import math
import re
from array import array
from base64 import b85decode, b85encode
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from zlib import compress, crc32, decompress
from zlib import error as ZlibError

import msgspec

from stillroom.errors import ConfigError

BITS = 15
SIZE = 1 << BITS
"""N-grams are hashed to so many weights."""
WEIGHTS = Path(__file__).with_name("weights.json")
COPY = Path(__file__).with_name("weights.copy.json")
"""The same once more: what `stillroom doctor --fix` puts in place of a damaged file."""
_MAX_CHARS = 400
_WORD = re.compile(r"\w+|[^\w\s]")
_MOST = 30.0  # exp() beyond it says nothing more


class DamagedWeights(ConfigError):
    """The weights of the offline engine can't be read."""


class Linear:
    """Weights by name for features, and by hash for n-grams."""

    def __init__(self, features: Mapping[str, float], hashed: Sequence[int | float], scale: float) -> None:
        self.features, self.hashed, self.scale = features, hashed, scale

    def score(self, text: str, features: Mapping[str, float]) -> float:
        """Between 0 and 1: how likely a later session needs the sentence."""
        total = sum(self.features.get(name, 0.0) * value for name, value in features.items() if value)
        grams = ngrams(text)
        total += self.scale * sum(self.hashed[gram] for gram in grams) / math.sqrt(len(grams) or 1)
        return 1 / (1 + math.exp(-max(-_MOST, min(_MOST, total))))


def ngrams(text: str) -> list[int]:
    """Hashes of a sentence's character 2- to 4-grams, its words and pairs of words, each once. Digits are all alike."""
    line = " ".join(text.casefold().replace("’", "'").split())[:_MAX_CHARS]
    line = re.sub(r"\d", "0", f" {line} ")
    words = _WORD.findall(line)
    grams = {line[at : at + n] for n in (2, 3, 4) for at in range(len(line) - n + 1)}
    grams.update(f"w {word}" for word in words)
    grams.update(f"p {one} {other}" for one, other in pairwise(words))
    grams.update(f"^ {word}" for word in words[:1])
    return sorted({crc32(gram.encode("utf-8", "replace")) & (SIZE - 1) for gram in grams})


class _Packed(msgspec.Struct):
    features: dict[str, float]
    scale: float
    hashed: str


def save(models: Mapping[str, Linear], path: Path = WEIGHTS) -> None:
    """Write the models; hashed weights become bytes of -127 to 127. Equal models make equal bytes."""
    packed = {}
    for name, model in models.items():
        top = max(abs(weight) for weight in model.hashed) or 1.0
        small = array("b", [round(127 * weight / top) for weight in model.hashed])
        packed[name] = _Packed(
            features={name: round(weight, 4) for name, weight in sorted(model.features.items())},
            scale=top * model.scale / 127,
            hashed=b85encode(compress(small.tobytes(), 9)).decode(),
        )
    path.write_bytes(msgspec.json.format(msgspec.json.encode(packed), indent=1) + b"\n")


@cache
def load(path: Path = WEIGHTS) -> dict[str, Linear]:
    """The models. Raises `DamagedWeights` if the file is missing or not whole."""
    try:
        packed = msgspec.json.decode(path.read_bytes(), type=dict[str, _Packed])
        models = {
            name: Linear(each.features, array("b", decompress(b85decode(each.hashed))), each.scale)
            for name, each in packed.items()
        }
    except (OSError, ValueError, msgspec.MsgspecError, ZlibError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise DamagedWeights(f"cannot read the offline engine's weights `{path}`: {reason}", hint=_HINT) from error
    numbers = [number for each in packed.values() for number in (each.scale, *each.features.values())]
    is_whole = set(models) == {"user", "assistant"} and all(len(each.hashed) == SIZE for each in models.values())
    if not is_whole or not all(map(math.isfinite, numbers)):
        raise DamagedWeights(f"the offline engine's weights `{path}` are not whole", hint=_HINT)
    return models


def restore(path: Path = WEIGHTS, copy: Path = COPY) -> None:
    """Put the copy in place of damaged weights. Raises `DamagedWeights` if the copy is damaged too, `OSError`."""
    load(copy)
    beside = path.with_suffix(".new")
    beside.write_bytes(copy.read_bytes())
    beside.replace(path)
    load.cache_clear()


_HINT = "`stillroom doctor --fix` restores them; `pip install --force-reinstall stillroom` does too"
