from __future__ import annotations

import msgspec
from store_samples import STAMP, forget, save, thread

from stillroom.clock import FixedClock
from stillroom.config import Memories, StageOne
from stillroom.store import Question, Standing, Store
from stillroom.store.records import ReadTotal, ThreadRead, UnknownTotal

READ = ThreadRead(
    messages=3, tokens=40, bad_lines=1, long_lines=2, cut_bytes=50, unknown={"telemetry": 2, "é\udce9": 1}
)


def standing(store: Store, clock: FixedClock) -> Standing:
    (found,) = store.standings.of_all(Question(memories=Memories(), stage=StageOne(), now_ms=clock.now_ms()))
    return found


def test_what_a_file_held_is_shown_as_it_was_when_it_was_last_read(store: Store, clock: FixedClock) -> None:
    save(store, thread("a"))
    assert (standing(store, clock).messages, standing(store, clock).tokens) == (None, None)
    store.reads.save("a", msgspec.structs.replace(READ, messages=1))
    store.reads.save("a", READ)
    found = standing(store, clock)
    assert (found.messages, found.tokens, found.grown) == (3, 40, False)
    store.threads.save([(thread("a"), msgspec.structs.replace(STAMP, size=STAMP.size + 1))])
    found = standing(store, clock)
    assert (found.messages, found.grown, found.size_bytes) == (3, True, STAMP.size + 1)


def test_what_no_reader_knows_is_added_up_by_agent_kind_and_version(store: Store) -> None:
    save(store, *(msgspec.structs.replace(thread(name), cli_version=version) for name, version in VERSIONS))
    for name, _ in VERSIONS:
        store.reads.save(name, READ)
    store.reads.save("c", msgspec.structs.replace(READ, unknown={}))
    store.reads.save("nobody", READ)  # deleted meanwhile
    totals = {(each.kind, each.version): (each.records, each.threads) for each in store.reads.unknown()}
    assert totals == {
        ("telemetry", "1.0"): (4, 2),
        ("é\udce9", "1.0"): (2, 2),
        ("telemetry", None): (2, 1),
        ("é\udce9", None): (1, 1),
    }
    assert UnknownTotal(agent="codex", kind="telemetry", version="1.0", records=4, threads=2) in store.reads.unknown()
    assert store.reads.totals() == [
        ReadTotal(agent="codex", threads=4, messages=12, tokens=160, bad_lines=4, long_lines=8, cut_bytes=200)
    ]
    forget(store, thread("a"))
    assert sum(each.records for each in store.reads.unknown()) == 6


VERSIONS = (("a", "1.0"), ("b", "1.0"), ("c", "1.0"), ("d", None))
