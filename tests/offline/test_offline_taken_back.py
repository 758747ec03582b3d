"""What no longer holds when a session ends: work that git took back, values that gave way, paths that moved."""

from __future__ import annotations

import pytest
from tests.offline.talk import memory

from stillroom.offline.session import chosen, files, hearing, overwritten
from stillroom.offline.session.checkout import Checkout
from stillroom.offline.session.turns import Turn, turns_of
from stillroom.rollouts.events import Edit, Ran, Said

ONE, TWO = ("a.py", "x = 1"), ("b.py", "y = 2")


def user(text: str) -> Said:
    return Said(who="user", text=text)


def ran(command: str, output: str = "", code: int = 0) -> Ran:
    return Ran(tool="shell", command=command, output=output, exit_code=code, ok=code == 0)


def patched(path: str, *lines: str) -> Ran:
    return Ran(tool="apply_patch", ok=True, edits=(Edit(path=path, action="update", diff="\n".join(lines)),))


def turns(*events: Said | Ran) -> list[Turn]:
    return turns_of(events)


def quotes(*events: Said | Ran) -> list[str]:
    return [wish.quote for wish in hearing.listen(turns(*events)).wishes]


@pytest.mark.parametrize(
    ("commands", "gone"),
    [
        (["git checkout -- a.py"], {ONE}),
        (["git restore ."], {ONE, TWO}),
        (["git checkout -b topic"], set()),
        (["git restore --staged a.py"], set()),
        (["git reset --soft HEAD~1"], set()),
        (["git reset --hard"], {ONE, TWO}),
        (["git commit -qam both", "git reset --hard"], set()),
        (["git commit -qam both", "git checkout -- a.py"], set()),
        (["git commit -qam both", "git reset --hard HEAD~1"], {ONE, TWO}),
        (["git commit -qam both", "git reset --hard origin/main"], {ONE, TWO}),
        (["git commit -qam both", "git revert --no-edit HEAD"], {ONE, TWO}),
        (["git commit -qam both", "git commit --allow-empty -m more", "git revert HEAD"], set()),
        (["git commit -qam both", "git commit --allow-empty -m more", "git revert HEAD~1"], {ONE, TWO}),
        (["git commit -qam both", "git revert 0123456"], set()),
        (["git stash"], set()),
        (["git stash", "git stash pop"], set()),
        (["git stash && git stash drop"], {ONE, TWO}),
        (["git -C /w stash", "git stash clear"], {ONE, TWO}),
        (["git switch -c x", "git commit -qam both", "git switch main", "git branch -D x"], {ONE, TWO}),
        (["git checkout -b x", "git commit -qam both", "git checkout main && git branch -D x"], {ONE, TWO}),
        (["git switch -c x", "git commit -qam both", "git switch main && git merge x", "git branch -d x"], set()),
        (["git commit -qam both", "git switch -c x", "git switch main", "git branch -D x"], set()),
    ],
)
def test_git_takes_away_what_it_would(commands: list[str], gone: set[tuple[str, str]]) -> None:
    tree = Checkout()
    tree.edited({ONE}, set())
    tree.edited({TWO}, set())
    assert set().union(*(tree.ran(ran(command)) for command in commands)) == gone


def test_a_revert_is_known_by_the_subject_or_the_name_that_git_printed() -> None:
    for revert in (ran("git revert --no-edit 4c1d2aa9", 'Revert "two"'), ran("git revert deadbeef", 'Revert "one"')):
        tree = Checkout()
        tree.edited({ONE}, set())
        tree.ran(ran("git commit -am one", "[main 4c1d2aa] one"))
        tree.edited({TWO}, set())
        tree.ran(ran("git commit -am two", "[main 77ab1c0] two"))
        assert tree.ran(revert) == {ONE}


def test_a_checkout_takes_back_the_last_attempt_and_not_what_was_settled_before() -> None:
    events = [
        user("the mails come twice"),
        patched("jobs.js", "+if (instance) return"),
        ran("npm test", "30 passed"),
        user("retries: 3"),
        patched("jobs.js", "+const RETRIES = 3"),
        ran("npm test", "30 passed"),
        user("try bull instead of cron"),
        patched("jobs.js", '+const Queue = require("bull")'),
        ran("npm test", "Error: connect ECONNREFUSED", 1),
        user("ah, it needs redis. out with it"),
        ran("git checkout -- jobs.js"),
    ]
    assert overwritten.find(turns(*events))[0] == {2: 3}
    assert files.changed(turns(*events), {2: 3}) == {"jobs.js": 1}
    text = memory(*events)
    assert "retries: 3" in text
    assert text.count("tried and reverted") == 1


def test_a_commit_that_was_reverted_is_told_as_taken_back() -> None:
    text = memory(
        user("the list page is slow, cache it for 10 minutes"),
        patched("views.py", "+@cache_page(600)"),
        ran("git commit -qam 'Cache the list'"),
        user("no good, people don't see their own posts. take that commit back"),
        ran("git revert --no-edit HEAD", 'Revert "Cache the list"'),
        patched("views.py", "+posts = posts.select_related('author')"),
        ran("make test", "OK"),
    )
    assert "tried and reverted (taken back by the user): `views.py` (`@cache_page(600)`)" in text
    assert 'asked: "the list page is slow, cache it' not in text


def test_a_value_that_a_commit_holds_gives_way_to_a_later_one() -> None:
    over = overwritten.find(
        turns(
            user("use redis for it"),
            patched("app.py", "+backend = redis"),
            ran("git commit -am one"),
            user("memcached, sorry"),
            patched("app.py", "-backend = redis", "+backend = memcached"),
        )
    )[1]
    assert (over[0].by, over[0].gone, over[0].come) == (1, {"redi"}, {"memcach"})


def test_a_value_with_which_a_command_failed_is_no_wish_when_another_one_worked() -> None:
    tried = [ran("bridge --port 1883", "refused", 1), ran("bridge --port 8883", "connected")]
    wish = "the broker must be on 1883, always dump what arrives"
    assert quotes(user("mend the dump"), patched("a.py", "+b"), user(wish), *tried[1:]) == [wish]
    assert quotes(user("mend the dump"), patched("a.py", "+b"), user(wish), *tried) == []


def test_a_file_is_told_under_the_name_it_has_in_the_end() -> None:
    events = [
        user("add the templates"),
        patched("src/mail/hello.html", "+<h1>"),
        patched("src/notes.txt", "+x"),
        patched("src/old/a.py", "+x"),
        ran("git mv src/mail/hello.html resources/mail/welcome.html && rm src/notes.txt"),
        ran("mv src/old src/new"),
    ]
    assert list(files.changed(turns(*events), {})) == ["resources/mail/welcome.html", "src/new/a.py"]


@pytest.mark.parametrize(
    ("said", "edit"),
    [
        ("slim it is", ("-FROM python:alpine", "+FROM python:slim")),
        ("the cap can go to a minute, devices are offline for hours", ("-FROM python:alpine", "+cap = time.Minute")),
        ('marketing finds it harsh, they want "We could not charge you"', ("+subject: We could not charge you",)),
    ],
)
def test_words_of_the_user_that_an_edit_puts_in_place_of_others_are_a_choice(said: str, edit: tuple[str, ...]) -> None:
    heard = turns(
        user("make the image small"),
        patched("Dockerfile", "+FROM python:alpine"),
        user(said),
        patched("Dockerfile", *edit),
    )
    over = overwritten.find(heard)[1]
    assert [wish.quote for wish in chosen.find(heard, over, frozenset())] == [said]
    assert chosen.find(heard, over, frozenset({1})) == []


@pytest.mark.parametrize("said", ["is slim faster?", "slim crashes", "try slim", "just this once slim", "undo slim"])
def test_a_question_a_complaint_or_a_trial_chooses_nothing(said: str) -> None:
    heard = turns(
        user("make the image small"),
        patched("Dockerfile", "+FROM python:alpine"),
        user(said),
        patched("Dockerfile", "-FROM python:alpine", "+FROM python:slim"),
    )
    assert chosen.find(heard, overwritten.find(heard)[1], frozenset()) == []


@pytest.mark.parametrize(
    ("rule", "beside"),
    [
        ("never push to main", "looks like rain"),
        ("never push to main", "my boss always asks at the worst time"),
        ("never push to main", "the one above"),
        ("nunca subas a main", "por fin, ya era hora"),
        ("não suba direto na main, nunca", "o de cima"),
        ("金额一律用分", "客户群里又炸了"),
    ],
)
def test_a_remark_beside_a_rule_is_no_part_of_it(rule: str, beside: str) -> None:
    for text in (f"{rule}. {beside}", f"{beside}. {rule}"):
        kept = quotes(user("fix the upload"), patched("a.py", "+b"), user(text), ran("make", "ok"))
        assert [quote.rstrip(".") for quote in kept] == [rule]


def test_a_reason_beside_a_rule_stays_with_it() -> None:
    text = "don't mock the Api in tests. mocks rot"
    assert quotes(user("fix the upload"), patched("a.py", "+b"), user(text), ran("make", "ok")) == [text]


def test_an_errand_on_words_leaves_nothing() -> None:
    assert (
        memory(
            user("write the release notes from the log"),
            ran("git log --oneline", "a1b Speed up"),
            Said(who="assistant", text="Export is faster.", final=True),
            user("make it a tad friendlier, it's our 5th birthday release"),
            Said(who="assistant", text="Five years! Export is faster.", final=True),
        )
        == ""
    )


def test_a_first_attempt_that_was_reverted_is_no_part_of_the_fix() -> None:
    text = memory(
        user("nested lists lose their indentation"),
        ran("npm test", "not ok 12 - nested list", 1),
        Said(who="assistant", text="The tokenizer trims each line. First try: keep the raw line."),
        patched("tokenize.js", "-t = trim()", "+t = raw"),
        ran("npm test", "not ok 12 - nested list", 1),
        ran("git checkout -- tokenize.js"),
        Said(who="assistant", text="The depth is known to the block parser; it only has to pass it on."),
        patched("blocks.js", "-push(text)", "+push(depth)"),
        ran("npm test", "# pass 40"),
    )
    assert "fixed in `blocks.js`" in text
    assert "tokenize.js" not in text


def test_an_order_to_a_running_system_is_done_when_it_is_done() -> None:
    scaled = [user("scale web to 6"), ran("kubectl scale deploy/web --replicas 6")]
    assert quotes(*scaled, user("it's over, back to 3"), ran("kubectl scale deploy/web --replicas 3")) == []


def test_what_was_mended_in_work_that_was_taken_back_is_no_lesson() -> None:
    events = [
        user("let users pick a theme"),
        patched("theme.ts", "+themes"),
        ran("npm test", "FAIL theme.test.ts: themes is not defined", 1),
        Said(who="assistant", text="It is used before it is defined, because the import runs first."),
        patched("theme.ts", "+export themes"),
        ran("npm test", "9 passed"),
        user("nobody found it in the user test. take it out again"),
        patched("theme.ts", "-themes", "-export themes"),
        ran("npm test", "9 passed"),
    ]
    assert "themes is not defined" in memory(*events[:6])
    assert "themes is not defined" not in memory(*events)


def test_a_fix_is_not_told_in_lines_that_were_rewritten_since() -> None:
    events = [
        user("the export test fails"),
        ran("npm test", "FAIL export.test.ts: cannot find codec", 1),
        Said(who="assistant", text="The codec is missing, because nobody registers it."),
        patched("codec.ts", "+use(latin)"),
        ran("npm test", "9 passed"),
        user("take utf8 for that, please"),
        patched("codec.ts", "-use(latin)", "+use(utf8)"),
        ran("npm test", "9 passed"),
    ]
    assert "use(latin)" in memory(*events[:5])
    assert "use(latin)" not in memory(*events)


def test_a_clause_whose_value_was_written_over_is_left_out() -> None:
    said = "use 4 workers for the importer, and log progress every 1000 rows"
    kept = quotes(
        user("the importer is slow"),
        patched("a.py", "+b"),
        user(said),
        patched("importer.py", "+WORKERS = 4", "+LOG_EVERY = 1000"),
        user("8 workers, the new box is bigger"),
        patched("importer.py", "-WORKERS = 4", "+WORKERS = 8"),
    )
    assert kept == ["and log progress every 1000 rows", "8 workers, the new box is bigger"]


@pytest.mark.parametrize(
    "said",
    [
        "the bill for november is 1,840",
        "the demo account has 41 orders in it",
        "this lamp is for my mum's birthday so I'm in a rush",
        "the staging data is from last spring",
    ],
)
def test_a_state_that_binds_nobody_is_not_kept(said: str) -> None:
    assert quotes(user("fix the upload"), patched("a.py", "+b"), user(said), patched("a.py", "+c")) == []
