"""Trains the two models of the offline engine on the labelled sessions, and writes the weights with their card.

    make train
    python -m training.train [--out DIR] [--report]

Lots are left out in turn to choose the strength of regularisation; then both models are fitted on everything.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from tests.quality.build import Scenario, load, write_rollout
from tests.quality.labels import Labels, labels_of

from stillroom.offline import model
from stillroom.offline.features import Sentence, found_in
from stillroom.offline.work import turns_of
from stillroom.sessions.events import Edit, Ran, Said, read_events
from stillroom.sessions.stream import open_items

SESSIONS = Path("tests/quality/dev")
SENTENCES = Path("tests/quality/sentence_sets")
TALKS = Path("tests/quality/talks")
MAX_LINE_BYTES = 8 * 1024 * 1024
HASHED_SHARE = 1.5  # of n-grams against features in the sum
FOLDS = 6
TALK_WEIGHT = 1.5


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence with its label."""

    sentence: Sentence
    label: int
    weight: float
    lot: str


def events_of(scenario: Scenario) -> list[Said | Ran]:
    with (
        tempfile.TemporaryDirectory() as home,
        open_items(write_rollout(scenario, Path(home)), max_line_bytes=MAX_LINE_BYTES) as items,
    ):
        return read_events(items)


def session_rows(paths: Iterable[Path]) -> list[Row]:
    rows = []
    for path in paths:
        scenario = load(path)
        found = found_in(turns_of(events_of(scenario)))
        for one, (label, weight) in zip(found, labelled(found, labels_of(scenario.table)), strict=True):
            if weight:
                rows.append(Row(one, label, weight, lot_of(path)))
    return rows


def lot_of(path: Path) -> str:
    """Sessions whose names begin alike were written together."""
    return path.parent.name + "/" + path.stem.partition("_")[0]


def labelled(found: Sequence[Sentence], labels: Labels) -> list[tuple[int, float]]:
    """Label and weight of each sentence: 1 where it holds a fact, 0 where it holds what must not be kept; weight 0
    where the labels leave it open."""
    facts = [fact for fact in labels.facts if fact.kind in ("preference", "decision", "fact")]
    others = [fact for fact in labels.facts if fact.kind in ("failure", "outcome")]
    done: list[tuple[int, float]] = []
    covered: set[int] = set()
    for one in found:
        full = [fact for fact in facts if fact.matches(one.text)]
        covered |= {id(fact) for fact in full}
        bad = any(never.is_kept_in(one.text) for never in labels.never)
        whole = any(fact.matches(one.text) for fact in others)
        part = any(fact.touches(one.text) for fact in others)
        fine = any(label.matches(one.text) for label in labels.allowed)
        if one.who == "user":
            done.append(
                (1, 1.0)
                if full and not bad
                else (0, 1.6)
                if bad
                else (1, 0.7)
                if whole
                else (0, 0.0)
                if fine or part
                else (0, 1.0)
            )
        else:
            done.append(
                (0, 1.6) if bad else (1, 1.0) if full or whole else (1, 0.6) if part else (0, 0.0) if fine else (0, 1.0)
            )
    _mark_halves(found, facts, covered, labels, done)
    return done


def _mark_halves(found, facts, covered, labels, done) -> None:
    """A fact that only two neighbouring sentences hold, or one with the sentence that it answers, marks them."""
    users = [(at, one) for at, one in enumerate(found) if one.who == "user"]
    for fact in (fact for fact in facts if id(fact) not in covered):
        for (at, one), (after, other) in pairwise(users):
            if other.turn - one.turn <= 1 and fact.matches(f"{one.text}\n{other.text}"):
                for place, each in ((at, one), (after, other)):
                    if fact.touches(each.text) and not any(never.is_kept_in(each.text) for never in labels.never):
                        done[place] = (1, 0.8)
        for at, one in users:
            answers = one.context and fact.matches(f"{one.context}\n{one.text}")
            fine = not any(never.is_kept_in(one.text) for never in labels.never)
            if answers and fine and (fact.touches(one.text) or one.first):
                done[at] = (1, 0.8)


def sentence_rows() -> list[Row]:
    """The sentence sets: each sentence alone after a first task, alone in a chat, and among others of its language."""
    rows = []
    for path in sorted(SENTENCES.glob("*.toml")):
        for language, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
            told = {text: label for kind, label in (("keep", 1), ("pass", 0)) for text in table[kind]}
            for text in told:
                rows += _rows_of(_in_work([text]), told, 0.7)
                rows += _rows_of([_said(text)], told, 0.3)
            mixed = sorted(told)
            random.Random(f"{path.stem}/{language}").shuffle(mixed)
            for start in range(0, len(mixed), 3):
                message = " ".join(_ended(text) for text in mixed[start : start + 3])
                rows += _rows_of(_in_work([message]), told, 0.5)
                rows += _rows_of([_said(message), *_WORK], told, 0.3)
            for one, other in pairwise(mixed):
                rows += _rows_of([_said(one), _NOTED, _said(other), _NOTED], told, 0.15)
    return rows


def _rows_of(events: list[Said | Ran], told: dict[str, int], weight: float) -> list[Row]:
    by_start = {_folded(text): label for text, label in told.items()}
    found = [one for one in found_in(turns_of(events)) if one.who == "user"]
    return [Row(one, by_start[key], weight, "") for one in found if (key := _folded(one.text)) in by_start]


def _ended(text: str) -> str:
    return text if text[-1] in ".!?。！？…" else f"{text}."


def _said(text: str) -> Said:
    return Said(who="user", text=text)


def _in_work(messages: Sequence[str]) -> list[Said | Ran]:
    return [
        Said(who="user", text="x"),
        Ran(tool="shell", command="make test", exit_code=0, ok=True, output="ok"),
        Said(who="assistant", text="ok", final=True),
        *map(_said, messages),
        *_WORK,
    ]


_NOTED = Said(who="assistant", text="Noted.", final=True)


_WORK = (
    Ran(tool="apply_patch", ok=True, edits=(Edit("a.py", "update", "+x"),)),
    Said(who="assistant", text="ok", final=True),
)


def talk_rows() -> list[Row]:
    """Streams of messages as dense as real ones: nearly all of what people type is a task, a question, a report."""
    rows = []
    for path in sorted(TALKS.glob("*.toml")):
        for number, talk in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["talk"]):
            events, keep = _stream(talk["script"])
            for one in found_in(turns_of(events)):
                if one.who == "user":
                    label = any(_folded(k) in _folded(one.text) or _folded(one.text) in _folded(k) for k in keep)
                    rows.append(Row(one, int(label), TALK_WEIGHT, f"talks/{path.stem}.{number}"))
    return rows


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!。！")


def _stream(script: str) -> tuple[list[Said | Ran], list[str]]:
    """The events of a talk and what is to be kept of it (tests/quality/README.md has the notation)."""
    events: list[Said | Ran] = []
    keep: list[str] = []
    for line in script.strip().splitlines():
        mark, _, rest = line.partition(":")
        rest = rest.strip()
        match mark.strip():
            case "u":
                events.append(_said(rest.replace("\\n", "\n")))
            case "a":
                events.append(Said(who="assistant", text=rest, final=True))
            case "e":
                path, *changes = rest.split(" | ")
                edit = Edit(path, "update", "\n".join(changes))
                events.append(Ran(tool="apply_patch", ok=True, edits=(edit,)))
            case "r0" | "r1":
                code = int(mark.strip()[1])
                events.append(Ran(tool="shell", command=rest, exit_code=code, ok=not code))
            case "k":
                keep.append(rest)
            case _:
                raise ValueError(f"`{line}` is no line of a talk")
    return events, keep


def matrix(rows: Sequence[Row], names: Sequence[str]) -> sparse.csr_matrix:
    index = {name: at for at, name in enumerate(names)}
    row_of, column_of, values = [], [], []
    for number, row in enumerate(rows):
        for name, value in row.sentence.features.items():
            if name in index:
                row_of.append(number)
                column_of.append(index[name])
                values.append(value)
        grams = model.ngrams(row.sentence.text)
        row_of += [number] * len(grams)
        column_of += [len(names) + gram for gram in grams]
        values += [HASHED_SHARE / len(grams) ** 0.5] * len(grams)
    return sparse.csr_matrix((values, (row_of, column_of)), shape=(len(rows), len(names) + model.SIZE))


def names_of(rows: Sequence[Row]) -> list[str]:
    return sorted({name for row in rows for name in row.sentence.features})


def fit(rows: Sequence[Row], names: Sequence[str], strength: float) -> model.Linear:
    regression = LogisticRegression(C=strength, max_iter=300, solver="liblinear", random_state=0)
    regression.fit(matrix(rows, names), [row.label for row in rows], sample_weight=[row.weight for row in rows])
    weights = regression.coef_[0]
    features = dict(zip(names, map(float, weights[: len(names)]), strict=True))
    features["bias"] = features.get("bias", 0.0) + float(regression.intercept_[0])
    return model.Linear(features, [float(w) for w in weights[len(names) :]], HASHED_SHARE)


def folds(rows: Sequence[Row]) -> list[int]:
    """A fold for each lot; -1 for rows that are always trained on."""
    lots = sorted({row.lot for row in rows if row.lot})
    fold = {lot: at % FOLDS for at, lot in enumerate(lots)}
    return [fold.get(row.lot, -1) for row in rows]


def left_out(rows: Sequence[Row], strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores of rows by models that saw nothing of their lots, with which rows have one."""
    names, fold_of = names_of(rows), np.array(folds(rows))
    scores = np.full(len(rows), np.nan)
    for fold in range(FOLDS):
        trained = fit([row for row, f in zip(rows, fold_of, strict=True) if f != fold], names, strength)
        for at in np.flatnonzero(fold_of == fold):
            scores[at] = trained.score(rows[at].sentence.text, rows[at].sentence.features)
    return scores, fold_of >= 0


def of(rows: Sequence[Row], who: str) -> list[Row]:
    return [row for row in rows if row.sentence.who == who]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=model.WEIGHTS)
    parser.add_argument("--report", action="store_true", help="leave lots out, and print figures and largest weights")
    given = parser.parse_args(arguments)
    rows = session_rows(sorted(SESSIONS.glob("**/*.toml"))) + sentence_rows() + talk_rows()
    models = {}
    for who in ("user", "assistant"):
        own = of(rows, who)
        if given.report:
            scores, has = left_out(own, 1.0)
            label = np.array([row.label for row in own])
            print(
                f"{who}: {len(own)} rows; lots left out: AP {average_precision_score(label[has], scores[has]):.3f}, "
                f"AUC {roc_auc_score(label[has], scores[has]):.3f}"
            )
        models[who] = fit(own, names_of(own), 1.0)
        if given.report:
            largest = sorted(models[who].features.items(), key=lambda item: -abs(item[1]))[:40]
            print("  " + ", ".join(f"{name} {weight:+.1f}" for name, weight in largest))
    model.save(models, given.out)
    if given.out == model.WEIGHTS:
        model.COPY.write_bytes(given.out.read_bytes())
    print(f"{given.out}: {given.out.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
