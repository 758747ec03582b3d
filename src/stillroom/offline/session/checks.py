"""Whether a tool call failed, and which line of its output says why."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from stillroom.offline.session import shell
from stillroom.offline.sizes import ERROR_CHARS, MAX_OUTPUT_CHARS
from stillroom.offline.text.words import shorten
from stillroom.pattern import late
from stillroom.rollouts.events import Ran

Verdict = Literal["passed", "failed", "unknown"]

# Output of a run that failed, whatever its exit code says. Anchored at line starts, or very telling.
_FAILING = late(
    r"""^(?:
      FAILED\b | FAIL[:\s]\S* | ---\sFAIL: | \s*✗\s | \s*✖\s | \s*[×✕]\s\S | not\sok\s\d
    | error(?:\[\w+\])?:\s\S
    | \S+:\d+(?::\d+)?:?\s(?:fatal\s)?error\b | \S+\(\d+,\d+\):\serror\s | Traceback\s\(most\srecent
    | npm\sERR!\s | npm\serror\s
    | ERR_\w+ | \s*ERR_PNPM\w* | fatal:\s | panic:\s | Error:\s\S | \w+Error:\s | [\w.]+Exception(?::|\sin)\s
    | make(?:\[\d+\])?:\s\*\*\* | BUILD\s(?:FAILED|FAILURE) | FAILURES?!? | Segmentation\sfault | .*\bTests?\sfailed\b
    | E\s{3,}\S | Uncaught\s | rake\saborted | \s*AssertionError | thread\s'.*'\spanicked
    )
    | (?<![\d.])[1-9]\d*\s(?:tests?\s|specs?\s|examples?\s)?(?:failed|failing|failures?|errors?)\b(?!\s*\(0)
    | test\sresult:\sFAILED | \bcommand\snot\sfound\b | :\snot\sfound$ | error\sTS\d+ | \bundefined\sreference\b
    | =+\s.*\b[1-9]\d*\s(?:failed|errors?)\b | \berrors?\s+found\b
    """,
    re.VERBOSE | re.MULTILINE,
)
# Nothing of the above is without one of these: most outputs are settled by looking for plain words.
_TELLING = (
    "fail",
    "error",
    "err!",
    "err_",
    "traceback",
    "fatal",
    "panic",
    "exception",
    "not ok",
    "✗",
    "✖",
    "×",
    "✕",
    "not found",
    "undefined reference",
    "assertion",
    "segmentation",
    "uncaught",
    "aborted",
    "***",
    "e  ",
)
_PASSING = late(
    r"(?<!\d)0 (?:failed|failures|errors)|\b\d+ pass(?:ed|ing)|\ball (?:tests|checks) pass|"
    r"test result: ok|^ok\s|^OK\b|\bBUILD SUCCESS|\bSuccess\b|no (?:issues|errors|problems)|"
    r"\b0 problems|✓|All checks passed",
    re.IGNORECASE | re.MULTILINE,
)

_NO_TESTS = late(
    r"\b0 (?:tests?|specs?|examples|scenarios),? (?:0 |ran|run|found|\()|\bran 0 tests|\bcollected 0 items"
    r"|\bno tests? (?:files? )?(?:ran|run|found|to run|collected|matched)",
    re.IGNORECASE,
)
_SOME_TESTS = late(
    r"(?<![\d.])[1-9]\d* (?:tests?|specs?|examples|scenarios|passed|passing)\b|^ok\s", re.IGNORECASE | re.MULTILINE
)
_EXACT = late(
    r"^\s*(?:E\s+|>\s+|Caused by:\s+)?(?:[\w.]+::)*[\w.]*(?:Error|Exception|Panic|Fault)\b(?:\s\[\w+\])?:\s*\S|"
    r"error(?:\[\w+\]|\sTS\d+|\s[A-Z]+\d+)|^\s*fatal:|panicked\sat|^panic:|:\serror:|"
    r"undefined reference|command not found|No such file|Permission denied|permission denied|"
    r"ECONNREFUSED|EADDRINUSE|address already in use|not found|cannot find|Cannot find|"
    r"[Cc]ould not (?:find|connect|resolve)|unresolved|mismatch|denied|refused|violates|duplicate|"
    r"incompatible|unsupported|deprecated and removed|expected\b.*\b(?:got|received|found|actual)|"
    r"expected .{1,80} to (?:be|equal|have|match|contain|include)\b|"
    r"(?:no|n'est pas|não é|nicht|не) (?:es )?(?:reconoc\w+|reconnu\w*|reconhecid\w+|erkannt|распозна\w+)|"
    r"not recogni[sz]ed|introuvable|no encontrad[oa]|não encontrad[oa]|nicht gefunden|не найден\w*|找不到|未找到|"
    r"見つかりません|찾을 수 없|"
    r"Expected\b|timed? ?out|Timeout|OOM|out of memory|lock(?:ed)?\b"
)
_BROAD = late(
    r"\berror\b|\bfail(?:ed|ure)?\b|\bfatal\b|\bassert|错误|失败|エラー|失敗|오류|실패|ошибка|fehler|erreur|échec|"
    r"erro\b|falha|fallo|not ok|✗|✖|✕|×|^E\s{2,}",
    re.IGNORECASE,
)
# No line that scores is without one of these.
# fmt: off
_TELLING_LINE = (
    "error", "exception", "panic", "fault", "fatal", "undefined", "not found", "no such file", "denied", "econnrefused",
    "eaddrinuse", "in use", "cannot find", "could not", "unresolved", "mismatch", "refused", "violates", "duplicate",
    "incompatible", "unsupported", "deprecated and removed", "expected", "time", "oom", "out of memory", "lock", "fail",
    "assert", "错误", "失败",
    "エラー", "失敗", "오류", "실패", "ошибка", "fehler", "erreur", "échec", "erro", "falha", "fallo",
    "not ok", "✗", "✖", "✕", "×", "e  ", "e\t", "recog", "recono", "reconnu", "reconhec", "erkannt", "распозн",
    "introuvable", "encontrad", "nicht gefunden", "не найден", "找不到", "未找到", "見つかりません", "찾을 수 없",
)
# fmt: on
# A test that failed, by name.
_NAMED = late(
    r"^\s*(?:FAILED\s+\S*::\S+|FAIL:?\s+\S.*|--- FAIL: \S+|[✗✖✕×●]\s+\S.*|not ok \d+.*|"
    r"\S.* > \S.* FAILED|\d+\) \S.*|test \S+ \.\.\. FAILED)$",
    re.MULTILINE,
)
_EXPECTED = late(r"^\s*[Ee]xpected:? .*\n+\s*(?:[Rr]eceived|[Aa]ctual|[Gg]ot|but was):? .*", re.MULTILINE)
# Lines that only say that something failed.
_EMPTY = late(
    r"panicked at \S+:$|^\s*(?:error|errors|failed|failure|fail|fatal|exception|uncaught|traceback.*|npm ERR!|"
    r"npm error)\s*[:!.]*\s*$|A complete log of this run|make(?:\[\d+\])?: \*\*\*|"
    r"exit(?:ed with)? (?:status|code)|could not compile|Command failed|ELIFECYCLE|=+ (?:FAILURES|"
    r"ERRORS|short test summary)|errno \d+$|Process exited|npm (?:ERR!|error) (?:code|errno|path|"
    r"command|syscall|Lifecycle)|aborting due to|\d+ (?:failed|passed|errors?|warnings?|"
    r"problems?)\b.*$|test result:|Tests?:\s+\d|BUILD FAILED|^FAIL(?:ED)?\s+\S+$|FAILED \(|"
    r"^\s*File \"|During handling|The above exception|Finished in|^\s*at\s",
    re.IGNORECASE,
)


def output_of(run: Ran) -> str:
    """The output, cut in the middle when it is long."""
    text = run.output
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    half = MAX_OUTPUT_CHARS // 2
    return text[:half] + "\n" + text[-half:]


def verdict(run: Ran) -> Verdict:
    """What became of a call. A pipe, `;` or `|| true` may hide a failure: then the output decides."""
    command = run.command or ""
    if run.exit_code is not None and run.exit_code != 0:
        return "failed"
    if run.ok is False:
        return "failed"
    if run.exit_code is None and run.ok is None:
        if not command:
            return "unknown"
        return "failed" if _says_failed(output_of(run)) else "passed" if says_passed(run) else "unknown"
    # Commands that only look may well show the word.
    if command and shell.hides_status(command) and not looks_only(run) and _says_failed(output_of(run)):
        return "failed"
    return "passed"


def ran_nothing(run: Ran) -> bool:
    """Whether a test run says that it found no test to run: it shows nothing."""
    output = output_of(run)
    if "0 " not in output and "no test" not in output.casefold():
        return False
    return _NO_TESTS.search(output) is not None and _SOME_TESTS.search(output) is None


def says_passed(run: Ran) -> bool:
    """Whether the output says that checks passed."""
    return _PASSING.search(output_of(run)) is not None


def looks_only(run: Ran) -> bool:
    """Whether every part of the command only looks or keeps house."""
    command = run.command or ""
    if not command.strip():
        return True
    return all(shell.only_looks(part.head) or shell.is_chore(part.head) for part in shell.parts(command))


@lru_cache(maxsize=512)
def error_line(output: str) -> str:
    """What `output` says went wrong: the name of the failing test, if one is named, and the most telling line."""
    best = _best_line(output)
    named = next((m[0].strip() for m in _NAMED.finditer(output)), "")
    if best.startswith(("Expected", "expected")) and (pair := _EXPECTED.search(output)):
        best = " ".join(pair[0].split())
    if named and best and named not in best and best not in named:
        best = f"{shorten(named, 100)}: {best}"
    return shorten(best or named, ERROR_CHARS)


def _best_line(output: str) -> str:
    best, best_score = "", 0.0
    lines = output.splitlines()
    for number, line in enumerate(lines):
        text = line.strip()
        if not 5 <= len(text) <= 2000:
            continue
        lowered = line.casefold()
        score = _score(line) if any(word in lowered for word in _TELLING_LINE) else 0.0
        if score <= 0:
            continue
        if _EMPTY.search(text):
            # "Error:" alone: what it means stands on the next line.
            following = next((entry.strip() for entry in lines[number + 1 : number + 4] if entry.strip()), "")
            if text.rstrip().endswith(":") and following and not following.startswith("at "):
                text, score = f"{text} {following}", 2.5
            else:
                score = 0.4
        if score > best_score:
            best, best_score = text, score
    return best


def _score(line: str) -> float:
    score = 0.0
    if _EXACT.search(line):
        score += 3
    if _BROAD.search(line):
        score += 1.5
    if score and re.search(r"['\"`‘“][^'\"`]+['\"`’”]|\w+[._/]\w+", line):
        score += 0.5
    if score and re.match(r"^\s*(?:E\s{2,}|error|fatal|panic|[\w.]*(?:Error|Exception):)", line):
        score += 1
    if "warning" in line.casefold():
        score -= 2
    if re.match(r"^\s*(?:E\s+)?assert\b", line):
        score -= 0.5
    return score


# Several rules ask of the same run.
@lru_cache(maxsize=512)
def _says_failed(output: str) -> bool:
    telling = output.casefold()
    return any(word in telling for word in _TELLING) and _FAILING.search(output) is not None
