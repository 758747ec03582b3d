"""What a rule said of a thread, as a sentence."""

from __future__ import annotations

from stillroom.cli.moment import moment
from stillroom.pausing import told_pause
from stillroom.store.rules import Ruling, Values
from stillroom.wording import many, span


def why(ruling: Ruling) -> str:
    """One line on what the rule found, without what would change it."""
    sentence = _passed if ruling.verdict == "passes" else _refused
    told = sentence(ruling, ruling.values)
    return f"{told}, until {moment(ruling.until)}" if ruling.until is not None and ruling.verdict == "waits" else told


def remedy(ruling: Ruling) -> str | None:
    """What a person can change about it: the setting, the command, or else whatever does; None: it refuses nothing."""
    if ruling.verdict == "passes" or ruling.values.get("told_whole"):
        return None
    ways = [f"`{way}`" for way in (ruling.setting, ruling.command) if way] + [ruling.otherwise or ""]
    return " or ".join(filter(None, ways)) or None


def _refused(ruling: Ruling, values: Values) -> str:
    match ruling.rule:
        case "enabled":
            return "memories are switched off"
        case "mode":
            mode = values["chosen"] or values["recorded"]
            if mode == "polluted":
                return "it took in words of the web or of an MCP server, so it may not be remembered"
            who = "set here" if values["chosen"] else "as its agent recorded"
            return f"{mode}: it may not be remembered, {who}"
        case "project":
            return "the memory of its project is switched off"
        case "watermark" if values["told_whole"]:
            return f"word for word what `{values['told_in']}` says, and left to it"
        case "watermark" if values["told_in"]:
            return f"extracted up to its last activity, from where it leaves `{values['told_in']}`"
        case "watermark" if values["expired_at"]:
            return f"what was extracted of it left the memory unused, {moment(values['expired_at'])}"
        case "watermark":
            return "extracted up to its last activity"
        case "missing":
            return "its file is gone"
        case "archived":
            return "archived"
        case "preview":
            return "no person said a word in it"
        case "memory_worker":
            return "it is a session of the memory itself"
        case "source":
            return f"no person was at the other end (`{values['source']}`)"
        case "current":
            return "the pass is started from it"
        case "session":
            return "it is none of the sessions that were asked for"
        case "cwd":
            return f"it did not run in `{values['asked']}` or below"
        case "idle":
            return f"active less than {span(int(values['idle_seconds'] or 0))} ago"
        case "age":
            return f"not active for more than {_many(values['max_rollout_age_days'], 'day')}"
        case "scan_limit":
            return f"a pass looks at the newest {values['thread_scan_limit']:,} threads only"
        case "lease":
            return "another process extracts it, or was killed while it did"
        case "retries":
            return f"it failed too often: {values['last_error'] or 'the reason is not known'}"
        case "backoff":
            return f"{values['last_error'] or 'it failed, and the reason is not known'}; the next try waits"
        case "paused":
            return told_pause(str(values["paused_since"]))
        case "cap":
            return f"a pass takes {values['max_rollouts_per_startup']}, {values['newer_threads']} newer ones come first"
        case _:
            return _out(ruling, values)


def _out(ruling: Ruling, values: Values) -> str:
    """Of the rules about what was extracted."""
    match ruling.rule:
        case "output":
            if not values["extracted"]:
                return "nothing was extracted of it"
            return f"not looked into: {values['reason']}" if values["reason"] else "nothing durable was found in it"
        case "remembered":
            return "it may not be remembered any more"
        case "words":
            return "what was extracted is blank"
        case "undone":
            return "an undo took it out of the memory"
        case "used":
            days = _many(values["max_unused_days"], "day")
            return f"neither cited nor given to a session for more than {days}, since {moment(values['alive_at'])}"
        case "rank" if ruling.verdict == "refuses":
            return (
                f"{values['max_raw_memories_for_consolidation']} others rank before it; it is number {values['rank']}"
            )
        case "rank":
            return "not ranked"
        case _:
            days = _many(values["max_unused_days"], "day")
            stays = "; it stays as long as the memory rests on it" if values["in_folder"] else ""
            return f"removed by the next pass: not used for more than {days}{stays}"


def _passed(ruling: Ruling, values: Values) -> str:
    match ruling.rule:
        case "enabled":
            return "memories are switched on"
        case "mode":
            return "it may be remembered"
        case "project":
            return "the memory of its project is on"
        case "watermark":
            again = "to be extracted again" if values["reopened"] else "active since it was extracted"
            return again if values["extracted_up_to"] is not None else "not extracted yet"
        case "missing":
            return "its file is there"
        case "archived":
            return "not archived"
        case "preview":
            return "a person spoke in it"
        case "memory_worker":
            return "it is no session of the memory itself"
        case "source":
            return f"a person was at the other end (`{values['source']}`)"
        case "current":
            return "the pass is not started from it"
        case "cwd":
            return f"it ran in `{values['cwd']}`" if values["cwd"] else "it does not say in which folder it ran"
        case "session":
            return "it was asked for" if values["asked"] else "no other session was asked for"
        case "idle" if values["ended"]:
            return "its client said that it is over"
        case "idle":
            return f"quiet since {moment(values['updated_at'])}"
        case "age":
            return f"active in the last {_many(values['max_rollout_age_days'], 'day')}, or a backfill"
        case "scan_limit":
            return f"newer ones that a pass looks at: {values['newer_threads']:,}"
        case "lease":
            return "nobody else extracts it"
        case "retries":
            return f"it may be tried {_many(values['retries_left'], 'time')}"
        case "backoff":
            return "no failure is too recent"
        case "paused":
            return "passes are not paused"
        case "cap":
            return "the next pass takes it"
        case _:
            return _in(ruling, values)


def _in(ruling: Ruling, values: Values) -> str:
    """Of the rules about what was extracted."""
    match ruling.rule:
        case "output":
            return f"extracted {moment(values['generated_at'])}"
        case "remembered":
            return "it may still be remembered"
        case "words":
            return "it says something"
        case "undone":
            return "an undo brought it back" if values["held"] else "no undo took it out"
        case "used":
            if values["holds_preferences"]:
                return "it holds preferences, which don't expire"
            return f"cited {_many(values['usage_count'], 'time')}; its age counts from {moment(values['alive_at'])}"
        case "rank":
            rests = ": the memory rests on it" if values["in_folder"] else ": the next consolidation takes it"
            return f"number {values['rank']} of {values['max_raw_memories_for_consolidation']}{rests}"
        case _:
            return "it stays in the database"


def _many(value: str | int | bool | None, one: str) -> str:
    return many(int(value or 0), one)
