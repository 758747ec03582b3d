"""Which lines of outputs stay out of the memory folder: those that only a tool or the web said (`stillroom.lanes`).

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3

import msgspec

from stillroom.lanes import Quarantined, Witnesses, admit, quarantined
from stillroom.store.records import Selection, Stage1Output, Withheld
from stillroom.store.sql import execute


def without_quarantined(db: sqlite3.Connection, selection: Selection) -> Selection:
    """The selection without those lines, but for what a second session or a person supports; with what was left out.

    Where one stood in the summary of a session, another says so; its words are in the database alone.
    """
    outputs = {output.thread_id: output for output in (*selection.selected, *selection.on_disk)}
    if not any(" [lane: " in output.raw_memory + output.rollout_summary for output in outputs.values()):
        return selection
    trusted = {row["line_id"] for row in execute(db, "list_trusted_lines")}
    witnesses = Witnesses(output.raw_memory for output in outputs.values())
    withheld: dict[tuple[str, str], Withheld] = {}

    def admitted(output: Stage1Output) -> Stage1Output:
        def is_admitted(line: Quarantined) -> bool:
            return line.line_id in trusted or witnesses.support(line)

        for line in quarantined(f"{output.raw_memory}\n{output.rollout_summary}"):
            if not is_admitted(line):
                withheld[output.thread_id, line.line_id] = Withheld(
                    thread_id=output.thread_id, cwd=output.cwd, line=line
                )
        return msgspec.structs.replace(
            output,
            raw_memory=admit(output.raw_memory, is_admitted),
            rollout_summary=admit(output.rollout_summary, is_admitted, with_gaps=True),
        )

    clean = {thread_id: admitted(output) for thread_id, output in outputs.items()}
    return Selection(
        selected=tuple(clean[output.thread_id] for output in selection.selected),
        on_disk=tuple(clean[output.thread_id] for output in selection.on_disk),
        withheld=tuple(withheld.values()),
        leaving=selection.leaving,
    )
