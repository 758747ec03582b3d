"""Whose words stand where: what opens a session, what was only pasted, what was asked, and what in the end helped."""

from __future__ import annotations

import pytest
from tests.offline.talk import memory, patch, run, user

from stillroom.offline.session import hearing, shell
from stillroom.offline.session.turns import turns_of
from stillroom.rollouts.events import Ran, Said


def says(text: str) -> Said:
    return Said(who="assistant", text=text)


def wishes(*events: Said | Ran) -> list[str]:
    return [wish.quote for wish in hearing.listen(turns_of(events)).wishes]


MENDED = patch("feed.py", "-n = 25\n+n = 20\n")
CHECKED = run("make check", "12 passed")


@pytest.mark.parametrize(
    "complaint",
    [
        "logins drop each time a pod restarts",
        "tickets without an assignee don't show in the list",
        "die waage meldet nachts immer 0 kg",
    ],
)
def test_what_opens_a_session_is_its_fault_and_no_rule(complaint: str) -> None:
    assert wishes(user(complaint), says("PER_PAGE is 25, the fixture has 20."), MENDED, CHECKED) == []


def test_an_order_that_opens_a_session_is_kept() -> None:
    assert wishes(user("never push to main yourself, and fix the feed"), MENDED, CHECKED) != []


def test_a_fault_is_told_by_what_is_wrong_and_not_by_the_wish_to_look() -> None:
    told = memory(
        user("Good morning. The feed shows each post twice. Kindly investigate."),
        says("The cause is the page size: PER_PAGE is 25, and a page has 20 posts."),
        MENDED,
        CHECKED,
    )
    assert 'the user reported: "The feed shows each post twice."' in told
    assert "Kindly" not in told


def test_the_answer_to_a_question_is_no_fault() -> None:
    told = memory(
        user("new here. which service owns the posts table? nobody remembers"),
        run("rg -n posts", "gate/migrations/V14.sql: create table posts"),
        says("`posts` belongs to gate: its migration V14 creates it."),
        user("then let gate keep 20 of them"),
        MENDED,
        CHECKED,
    )
    assert "asked “which service owns the posts table?”, the assistant found: `posts` belongs to gate" in told
    assert "reported" not in told


def test_a_message_that_is_only_a_log_opens_a_turn() -> None:
    log = "TypeError: x is undefined\n    at load (feed.js:3:4)"
    told = memory(
        user(log),
        run("npm test", "FAIL feed.test.js\nTypeError: x is undefined", 1),
        says("The cause: load() is not awaited."),
        MENDED,
        run("npm test", "Tests: 5 passed"),
    )
    assert "`npm test` failed (exit 1)" in told
    assert "the user" not in told


def test_a_loop_is_a_run_of_what_stands_in_it() -> None:
    heads = [part.head for part in shell.parts("for s in 1 2 3; do python -m app.train --seed $s; done")]
    assert [shell.base(head) for head in heads if not shell.only_looks(head)] == ["python -m app.train"]


def test_a_run_that_found_no_test_mends_nothing() -> None:
    told = memory(
        user("the search test fails, fix it"),
        run("mix test", "1 test, 1 failure\n** (ArgumentError) got 2", 1),
        run("mix test --only announce", "0 tests, 0 failures (9 excluded)"),
        says("The selector is the cause: it finds two paragraphs."),
        MENDED,
        run("mix test", "9 tests, 0 failures"),
    )
    assert "--only announce" not in told.partition("References")[0]
    assert "fixed in `feed.py`" in told


def test_what_stands_before_the_same_command_in_a_chain_helped() -> None:
    told = memory(
        user("build it"),
        run("msbuild App.proj", '"msbuild" is not recognized as an internal or external command', 1),
        run("call rsvars.bat && msbuild App.proj", "0 errors"),
    )
    assert "what helped: `call rsvars.bat`" in told


def test_the_directory_is_told_when_only_that_was_another_one() -> None:
    told = memory(
        user("roll it out"),
        run("ansible-playbook dhcp.yml", "ERROR! the playbook: dhcp.yml could not be found", 4, "/ops/jobs"),
        run("ansible-playbook dhcp.yml", "ok=4", 0, "/ops/ansible"),
    )
    assert "what worked: `cd /ops/ansible && ansible-playbook dhcp.yml`" in told


def test_a_command_that_ended_a_fault_is_told_when_the_user_says_that_it_is_well() -> None:
    told = memory(
        user("the contact form doesn't send anything since the update"),
        run("wp option get smtp", "pass_source: db"),
        says("The cause: `pass_source` is db, so the old password in the database wins."),
        run("wp option patch delete smtp pass", "Success: Updated"),
        user("works, thanks! now the cheese block in three columns"),
        patch("style.css", "-repeat(2, 1fr)\n+repeat(3, 1fr)\n"),
    )
    assert "what helped: `wp option patch delete smtp pass`" in told
    assert "fixed in `style.css`" not in told


@pytest.mark.parametrize(
    "aside",
    [
        "rewrite it all in zig! (joking. always use zig)",
        "naturally the meters never send short frames",
        "oops did that drop the seeds as well",
        "the auditors are due on friday, so no changes any more then",
    ],
)
def test_jokes_and_days_are_no_wishes(aside: str) -> None:
    assert wishes(user("the feed test fails, fix it"), MENDED, CHECKED, user(aside), says("Fine.")) == []


def test_putting_off_is_no_agreement() -> None:
    asked = (user("should we use dyn everywhere?"), says("I would use dyn for mixed collections only."))
    assert wishes(user("fix the feed"), MENDED, *asked, user("hm, we'll see"), run("nproc", "16")) == []


def test_an_objection_that_came_to_nothing_changes_no_value() -> None:
    turns = turns_of(
        [
            user("fix the feed"),
            MENDED,
            CHECKED,
            user("keep them for 7 days"),
            patch("ttl.py", "+TTL_DAYS = 7\n"),
            user("wait, the rules look at 30 days"),
            says("Those read another table."),
            user("ah right. then it's fine"),
            CHECKED,
        ]
    )
    told = [f"{wish.quote} {wish.amended}" for wish in hearing.listen(turns).wishes]
    assert any("7 days" in line for line in told)
    assert not any("30 days" in line for line in told)


def test_work_that_is_written_again_stands() -> None:
    seeds = patch("train.py", "-SEEDS = [7]\n+SEEDS = [1, 2, 3]\n")
    events = [
        user("fix the feed"),
        MENDED,
        user("use seeds 1, 2 and 3 from now on"),
        seeds,
        user("drop the stack experiment"),
        run("git checkout -- ."),
        user("oops, did that drop the seeds"),
        seeds,
        CHECKED,
    ]
    assert any("seeds 1, 2 and 3" in quote for quote in wishes(*events))
