"""What a shell command reads or searches, for the programs that agents read with (spec §2.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Options whose value is a word of its own.
_GREP_VALUED = _words(
    "-e -f -A -B -C -m -d -D --regexp --file --after-context --before-context --context --max-count --include --exclude"
    " --exclude-dir --exclude-from --label --binary-files --directories --devices --max-depth --threads -O"
)
_RG_VALUED = _words(
    "-e -f -g -t -T -A -B -C -m -M -j -d -E -r --regexp --file --glob --iglob --type --type-not --type-add --type-clear"
    " --after-context --before-context --context --max-count --max-columns --threads --max-depth --encoding --replace"
    " --max-filesize --sort --sortr --ignore-file --color --colors --context-separator --field-context-separator"
    " --field-match-separator --path-separator --engine --pre --pre-glob --dfa-size-limit --regex-size-limit"
    " --hyperlink-format --generate --hostname-bin"
)
_AG_VALUED = _words(
    "-A -B -C -G -g -m -p -W --after --before --context --file-search-regex --ignore --ignore-dir --max-count --depth"
    " --path-to-ignore --pager --type --after-context --before-context --output --color-match --color-path"
)
_FD_VALUED = _words(
    "-d -E -e -t -S -j -c -o -x -X --max-depth --min-depth --exact-depth --exclude --extension --type --size --threads"
    " --color --owner --changed-within --changed-before --max-results --base-directory --search-path --ignore-file"
    " --exec --exec-batch"
)
_FIND_PATTERNS = _words("-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname")
_FIND_ACTIONS = _words("-exec -execdir -ok -okdir -delete -fls -fprint -fprint0 -fprintf")
_AWK_VALUED = _words("-F -v -f --file --assign --field-separator")
_SED_VALUED = _words("-e -f --expression --file -l")
_PATTERN_GIVEN = _words("-e -f --regexp --file")
_NONE: frozenset[str] = frozenset()
_COUNT = re.compile(r"-(n?)(\+?\d*)")
_IN_PLACE = re.compile(r"-[a-zA-Z]*i|--in-place")
_RANGE = re.compile(r"\d+(,\d+)?p")
_PYTHON_WALK = re.compile(r"\bos\.(?:walk|listdir|scandir)\(|\bglob\.i?glob\(|\.r?glob\(|\.iterdir\(")

_LISTERS = frozenset({"ls", "eza", "exa", "tree", "du"})
#: They form what comes through the pipe.
_FORMATTERS = frozenset({"wc", "tr", "cut", "sort", "uniq", "tee", "column", "yes", "printf"})
_BAT_VALUED = _words(
    "-l -r -H -m --language --line-range --highlight-line --map-syntax --theme --style --tabs --terminal-width --wrap"
    " --color --decorations --paging --pager --italic-text"
)
_LESS_VALUED = _words("-p -P -x -y -z -j -b -h -k -o -O -t -T --pattern --prompt --tabs --shift --jump-target")
_NL_VALUED = _words("-b -d -f -h -i -l -n -s -v -w")


def paths_drawn_on(words: list[str]) -> list[str] | None:
    """The paths that a command reads or searches: none for one that only lists or forms. None: it is not known."""
    program, arguments = words[0], words[1:]
    if program in _LISTERS or program in _FORMATTERS:
        return []
    reader = _PROGRAMS.get(program)
    return reader(arguments) if reader is not None else None


def _one(operands: list[str]) -> list[str] | None:
    return operands if len(operands) == 1 else None


def _reads_one(valued: frozenset[str] = _NONE) -> Callable[[list[str]], list[str] | None]:
    """A program that shows one file."""
    return lambda arguments: _one(operands_of(arguments, valued))


def _reads_end(arguments: list[str]) -> list[str] | None:
    """`head` and `tail`: a file, or what comes through the pipe."""
    rest = arguments
    if rest and (found := _COUNT.fullmatch(rest[0])):
        rest = rest[1:]
        if not found[2]:
            if found[1] != "n" or not rest or not re.fullmatch(r"[+-]?\d+", rest[0]):
                return None
            rest = rest[1:]
    if any(word.startswith("-") for word in rest) or len(rest) > 1:
        return None
    return rest


def _reads_lines(arguments: list[str]) -> list[str] | None:
    """`nl`."""
    operands = operands_of(arguments, _NL_VALUED)
    return operands if len(operands) < 2 else None


def _reads_awk(arguments: list[str]) -> list[str] | None:
    if "-i" in arguments:  # may be a library that writes in place
        return None
    operands = operands_of(arguments, _AWK_VALUED)
    if not any(word.startswith(("-f", "--file")) for word in arguments):
        operands = operands[1:]
    return operands if len(operands) < 2 else None


def _reads_sed(arguments: list[str]) -> list[str] | None:
    """`sed -n 1,20p FILE` reads it; without a file it formats what comes through the pipe."""
    flags = [word for word in arguments if word.startswith("-")]
    if any(map(_IN_PLACE.match, flags)):
        return None
    operands = operands_of(arguments, _SED_VALUED)
    scripts = [word for flag, word in pairwise(arguments) if flag in ("-e", "--expression")]
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    if not operands:
        return []
    ranged = all(map(_RANGE.fullmatch, scripts))
    return _one(operands) if ranged and scripts and "-n" in flags else None


def _searches(
    valued: frozenset[str], *, lists: str = "", by_flag: frozenset[str] = _PATTERN_GIVEN
) -> Callable[[list[str]], list[str]]:
    """A program that looks for a pattern in paths: the first operand is the pattern unless an option gives it."""

    def paths(arguments: list[str]) -> list[str]:
        if lists and lists in arguments:
            return []
        given, operands = _options(arguments, valued)
        return operands if given & by_flag else operands[1:]

    return paths


def _searches_git(arguments: list[str]) -> list[str] | None:
    match arguments:
        case ["grep", *rest]:
            return _searches(_GREP_VALUED)(rest)
        case ["ls-files", *_]:
            return []
        case _:
            return None


def _finds(arguments: list[str]) -> list[str] | None:
    """`find PATH… -name PATTERN` searches; without a pattern it lists."""
    if any(word in _FIND_ACTIONS for word in arguments):
        return None
    tests = next((at for at, word in enumerate(arguments) if word.startswith(("-", "(", "!"))), len(arguments))
    return arguments[:tests] if any(word in _FIND_PATTERNS for word in arguments[tests:]) else []


def _finds_fd(arguments: list[str]) -> list[str] | None:
    given, operands = _options(arguments, _FD_VALUED)
    return None if given & {"-x", "-X", "--exec", "--exec-batch"} else operands[1:]


def _runs_for_each(arguments: list[str]) -> list[str] | None:
    """`xargs` with a program that reads: which files is not said."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        at += 2 if arguments[at] in ("-I", "-n", "-P", "-L", "-d", "-s", "-E", "-a") else 1
    inner = arguments[at:]
    return [] if not inner or paths_drawn_on([*inner, "one of them"]) is not None else None


def _walks(arguments: list[str]) -> list[str] | None:
    """A line of Python that lists a folder."""
    match arguments:
        case ["-c", code] if _PYTHON_WALK.search(code):
            return []
        case _:
            return None


def _reads_content(arguments: list[str]) -> list[str] | None:
    """PowerShell's `Get-Content`."""
    operands: list[str] = []
    rest = iter(arguments)
    for word in rest:
        match word.lower():
            case "-path" | "-literalpath":
                operands.append(next(rest, ""))
            case "-totalcount" | "-head" | "-first" | "-tail" | "-last" | "-encoding" | "-readcount":
                next(rest, None)
            case "-raw":
                pass
            case flag if flag.startswith("-"):
                return None
            case _:
                operands.append(word)
    return _one(operands)


def operands_of(arguments: list[str], valued: frozenset[str] = _NONE) -> list[str]:
    """Without the options; `valued` names those whose value is a word of its own."""
    return _options(arguments, valued)[1]


def _options(arguments: list[str], valued: frozenset[str]) -> tuple[set[str], list[str]]:
    """The options that are given, and the operands. `valued` names the options whose value is a word of its own."""
    given: set[str] = set()
    operands: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if word == "--":
            operands += rest
        elif word.startswith("--"):
            name, joined, _ = word.partition("=")
            given.add(name)
            if not joined and name in valued:
                next(rest, None)
        elif word.startswith("-") and word != "-":
            if word in valued:  # also one of several letters
                given.add(word)
                next(rest, None)
                continue
            for at, letter in enumerate(word[1:], 2):
                given.add(f"-{letter}")
                if f"-{letter}" in valued:
                    if at == len(word):  # else the rest of the word is the value
                        next(rest, None)
                    break
        else:
            operands.append(word)
    return given, operands


_PROGRAMS: Mapping[str, Callable[[list[str]], list[str] | None]] = {
    "cat": _reads_one(),
    "more": _reads_one(),
    "bat": _reads_one(_BAT_VALUED),
    "batcat": _reads_one(_BAT_VALUED),
    "less": _reads_one(_LESS_VALUED),
    "head": _reads_end,
    "tail": _reads_end,
    "nl": _reads_lines,
    "awk": _reads_awk,
    "sed": _reads_sed,
    "Get-Content": _reads_content,
    "rg": _searches(_RG_VALUED, lists="--files"),
    "rga": _searches(_RG_VALUED, lists="--files"),
    "grep": _searches(_GREP_VALUED),
    "egrep": _searches(_GREP_VALUED),
    "fgrep": _searches(_GREP_VALUED),
    "ag": _searches(_AG_VALUED, by_flag=_NONE),
    "ack": _searches(_AG_VALUED, by_flag=_NONE),
    "pt": _searches(_AG_VALUED, by_flag=frozenset({"-e"})),
    "git": _searches_git,
    "find": _finds,
    "fd": _finds_fd,
    "xargs": _runs_for_each,
    "python": _walks,
    "python3": _walks,
}
