"""What of a session bears out the user's words: work done after them, its own words, a command that reads otherwise."""

from __future__ import annotations

import pytest

from stillroom.offline.session import failures, findings, hearing
from stillroom.offline.session.failure import Failure
from stillroom.offline.session.turns import turns_of
from stillroom.rollouts.events import Edit, Ran, Said


def edit(*lines: str, path: str = "src/queue.py") -> Ran:
    return Ran(tool="apply_patch", ok=True, edits=(Edit(path=path, action="update", diff="\n".join(lines) + "\n"),))


def ran(command: str, output: str, exit_code: int = 0) -> Ran:
    return Ran(tool="shell", command=command, exit_code=exit_code, output=output)


def user(text: str) -> Said:
    return Said(who="user", text=text)


def reply(text: str) -> Said:
    return Said(who="assistant", text=text, final=True)


def quotes(*events: Said | Ran) -> list[str]:
    return [wish.quote for wish in hearing.listen(turns_of(list(events))).wishes]


def faults(*events: Said | Ran) -> list[Failure]:
    turns = turns_of(list(events))
    heard = hearing.listen(turns)
    return [f for f in failures.find(turns, findings.find(turns, heard), heard) if f.reported]


WORK = (user("the upload test is flaky, fix it"), edit("-a = 1", "+a = 5"), reply("Fixed, it passes."))


@pytest.mark.parametrize(
    "said",
    ["OPS-7731 is with the platform people", "everything has to rest sometime", "the Kyoto office runs on bulk-mail"],
)
def test_a_bare_statement_that_nothing_came_of_is_left_out(said: str) -> None:
    assert quotes(*WORK, user(said), reply("Right.")) == []


@pytest.mark.parametrize(
    "said",
    [
        "never touch the migrations by hand",
        "legacy-billing allows at most 4 calls a second",
        "the Kyoto office runs on bulk-mail",
    ],
)
def test_it_is_kept_when_it_binds_or_the_session_speaks_of_it(said: str) -> None:
    assert quotes(*WORK, user(said), reply("Noted: Kyoto sends through bulk-mail, I leave that office out.")) == [said]


SLOW = "on Android the first page needs nine seconds until anything shows"
MEASURE = "adb shell am start -W app"
SWITCH = edit("-hermes=false", "+hermes=true", path="gradle.properties")


def test_a_fault_is_told_when_a_command_reads_otherwise_after_the_edit() -> None:
    before = (user(SLOW), ran(MEASURE, "TotalTime: 8914"), reply("Looking."))
    after = (user("that switch was me, in July"), SWITCH, ran(MEASURE, "TotalTime: 2105"), reply("Two seconds."))
    (fault,) = faults(*before, *after)
    assert (fault.reported, fault.files, fault.change) == (SLOW, ("gradle.properties",), "hermes=true")


@pytest.mark.parametrize("command", ["pytest tests", "make build"])
def test_a_check_that_passed_before_and_after_bears_nothing_out(command: str) -> None:
    assert not faults(user(SLOW), ran(command, "3 passed"), SWITCH, ran(command, "4 passed"), reply("Done."))


def test_a_fault_keeps_the_words_that_it_was_first_told_in() -> None:
    first = (user("the motor stalls above 900 steps on the new boards"), edit("-I = 16", "+I = 24"), reply("Raised."))
    back = (user("nope, same thing, put it back"), edit("-I = 24", "+I = 16"), reply("Put back. Another pin, then?"))
    found = (
        user("hang on, the new ones moved STEP to PB4"),
        ran("rg set_speed", "rev_b.rs: step.set_speed(High)"),
        Said(who="assistant", text="The cause is the slew rate: rev_c never sets it, because the pin is another one."),
        edit("+step.set_speed(High);", path="rev_c.rs"),
        reply("Clean up to 1500."),
    )
    (fault,) = faults(*first, *back, *found)
    assert "motor stalls" in fault.reported
    assert fault.files == ("rev_c.rs",)


def test_a_greeting_is_no_fault() -> None:
    (fault,) = faults(
        user("salut, depuis hier mes sprites sont flous quand la caméra bouge"),
        ran("rg ImagePlugin", "src/main.rs:14: DefaultPlugins"),
        Said(who="assistant", text="La cause : le filtre linéaire de `DefaultPlugins`, car la ligne est partie."),
        edit("-DefaultPlugins", "+DefaultPlugins.set(nearest())", path="src/main.rs"),
        reply("Fait."),
    )
    assert "flous" in fault.reported


def test_a_value_that_only_the_edits_tell_of_is_the_one_that_stands() -> None:
    kept = quotes(
        *WORK,
        user("wider foam"),
        edit("-foam = step(0.0, 0.35)", "+foam = step(0.0, 0.8)", path="water.frag"),
        reply("Wider."),
        user("too much"),
        edit("-foam = step(0.0, 0.8)", "+foam = step(0.0, 0.5)", path="water.frag"),
        reply("0.5 now."),
    )
    assert kept == ["too much"]


def test_an_attempt_stays_when_git_put_other_files_back() -> None:
    done = (user("the timer stops when idle"), edit("+alarms.create()", path="src/background.ts"), reply("Done."))
    back = (user("undo the renames, only what I asked for"), ran("git checkout -- src/model", ""), reply("Undone."))
    assert hearing.listen(turns_of([*done, *back])).undone == {}


def test_a_fault_is_not_mended_while_the_last_check_fails() -> None:
    assert not faults(
        user("bookings come out twice"),
        Said(who="assistant", text="The cause is a race, because two requests read before one writes."),
        edit("+synchronized book()", path="Booking.java"),
        ran("gradle test", "BookingTest FAILED", exit_code=1),
        reply("Still failing."),
    )


def test_a_decimal_is_no_label_of_a_choice() -> None:
    told = "Dry is set at 2.1 V and wet at 1.4 V. Measure both in air and in water."
    kept = quotes(
        user("the soil sensor reads 140%"),
        ran("grep soil log", "soil: 140"),
        reply(told),
        user("air 2.62, water 0.88"),
        edit("-- 2.1 -> 0", "-- 1.4 -> 100", "+- 2.62 -> 0", "+- 0.88 -> 100", path="greenhouse.yaml"),
        reply("Calibrated."),
    )
    assert kept == ["air 2.62, water 0.88"]


def test_an_errand_is_no_decision_unless_something_was_written_for_it() -> None:
    push = (user("going with a push straight to main, I talk to Teresa afterwards"), ran("git push origin main", "ok"))
    assert quotes(*WORK, *push, reply("Pushed.")) == []
