"""Shell commands: their parts, what they are a run of, and whether they only look."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from stillroom.pattern import late

_WRAPPERS = {"sudo", "env", "time", "nohup", "nice", "command", "exec", "stdbuf", "xvfb-run", "unbuffer", "caffeinate"}
_SHELLS = {"bash", "sh", "zsh", "dash", "fish"}


class _Programs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`shell.toml`."""

    looks: frozenset[str]
    chores: frozenset[str]
    runners: dict[str, frozenset[str]]
    looking_verbs: dict[str, frozenset[str]]
    chore_verbs: dict[str, frozenset[str]]


@cache
def _programs() -> _Programs:
    text = Path(__file__).with_name("shell.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Programs)


_LEADING = {"{", "}", "!", "do", "then", "else", "elif", "if", "while", "until"}
"""Stand before a command and are none."""
_PREFIXES = {"npx", "bunx", "pnpx", "uvx", "pipx"}
_VALUE_FLAGS = late(
    r"^-(?:[CcfnpumeoI]|-(?:prefix|filter|project|package|file|directory|manifest-path|cwd|config|workspace|env-file))$"
)
_INLINE = late(
    r"^(?:python[\d.]*|node|ruby|perl|php|deno|bun|psql|sqlite3|mysql)\b.*?\s(?:-c|-e|-p|-r|--eval|-)(?:\s|$|')|<<-?\s*['\"]?\w+|<<<"
)
_GENERIC = frozenset(
    [
        "run",
        "exec",
        "dev",
        "the",
        "x",
        "compose",
        "python",
        "python3",
        "node",
        "sh",
        "bash",
        "npx",
        "bunx",
        "uvx",
        "worker",
        "web",
        "app",
        "service",
    ]
)
_SYNONYMS = {
    "pytest": "test",
    "jest": "test",
    "vitest": "test",
    "tests": "test",
    "rspec": "test",
    "mocha": "test",
    "unittest": "test",
    "phpunit": "test",
    "nextest": "test",
    "ctest": "test",
    "tox": "test",
    "nox": "test",
    "pest": "test",
    "karma": "test",
    "ava": "test",
    "minitest": "test",
    "spec": "test",
    "specs": "test",
    "nose2": "test",
    "testing": "test",
}
_TO_NOWHERE = late(r"\s+(?:\d?>&\d|[\d&]?>>?\s*/dev/null)")
_ASSIGNMENT = late(r"^[A-Za-z_]\w*=")
_WORDLIKE = late(r"^:?[A-Za-z][\w:.-]*$")
_PATHLIKE = late(
    r"[/\\]|\.(?:py|js|ts|tsx|jsx|rb|go|rs|java|kt|c|cc|cpp|h|sh|sql|json|ya?ml|toml|md|txt|php|exs?|cs|swift|feature)\b"
)


@dataclass(frozen=True, slots=True)
class Part:
    """One pipeline of a command line, with the operator before it."""

    text: str
    joined_by: str  #: "", "&&", "||", ";" or "&"
    stages: tuple[str, ...]

    @property
    def head(self) -> str:
        return self.stages[0]


@lru_cache(maxsize=4096)
def parts(command: str) -> tuple[Part, ...]:
    """A command line split at `&&`, `||`, `;`, `&` and new lines; quotes, substitutions and heredocs stay whole."""
    command = unwrapped(command)
    found: list[Part] = []
    stages: list[str] = []
    operator = ""
    current: list[str] = []
    quote = ""
    depth = 0
    position = 0

    def close_stage() -> None:
        stage = _TO_NOWHERE.sub("", "".join(current)).strip()
        stage = re.sub(r"^(?:do|then|else)\s+", "", stage)
        current.clear()
        if stage:
            stages.append(stage)

    def close_part(following: str) -> None:
        nonlocal operator
        close_stage()
        if stages:
            found.append(Part(text=" | ".join(stages), joined_by=operator, stages=tuple(stages)))
            stages.clear()
            operator = following
        elif not found:
            operator = ""

    while position < len(command):
        char = command[position]
        if quote:
            current.append(char)
            if char == "\\" and quote == '"':
                current.append(command[position + 1 : position + 2])
                position += 1
            elif char == quote:
                quote = ""
        elif char in "'\"`":
            quote = char
            current.append(char)
        elif char == "\\":
            following = command[position + 1 : position + 2]
            current.append(" " if following == "\n" else char + following)
            position += 1
        elif char == "(":
            depth += 1
            current.append(char)
        elif char == ")":
            depth = max(0, depth - 1)
            current.append(char)
        elif char == "#" and (not current or current[-1].isspace()):
            end = command.find("\n", position)
            position = (len(command) if end < 0 else end) - 1
        elif depth:
            current.append(char)
        elif command.startswith("<<", position) and not command.startswith("<<<", position):
            end = _heredoc_end(command, position)
            current.append(command[position:end])
            position = end - 1
        elif command.startswith(("&&", "||"), position):
            close_part(command[position : position + 2])
            position += 1
        elif char == "|":
            close_stage()
            position += command.startswith("|&", position)
        elif char == "&" and (
            command[position - 1 : position] in (">", "<") or command[position + 1 : position + 2] == ">"
        ):
            current.append(char)
        elif char in ";\n&":
            close_part(";" if char == "\n" else char)
        else:
            current.append(char)
        position += 1
    close_part("")
    return tuple(found)


def unwrapped(command: str) -> str:
    """Without the `bash -lc '…'` that agents wrap commands in."""
    match = re.match(r"^\s*(?:\S*/)?(?:bash|sh|zsh)\s+-[a-z]*c\s+(['\"])(.*)\1\s*$", command, re.DOTALL)
    if not match:
        return command
    inner = match[2]
    return inner.replace('\\"', '"') if match[1] == '"' else inner.replace("'\\''", "'")


def words(stage: str) -> list[str]:
    """Words of a simple command, quotes kept together, redirections left out. Never raises."""
    found = re.findall(r"(?:[^\s'\"]|'[^']*'|\"(?:\\.|[^\"\\])*\"|['\"])+", stage.lstrip("( "))
    return [word.strip("'\"") if " " not in word else word for word in found if not re.match(r"^\d*[<>]", word)]


@lru_cache(maxsize=4096)
def base(stage: str) -> str:
    """What a simple command is a run of: program and sub-command, without options, paths and values."""
    rest = _program_words(stage)
    if not rest:
        return ""
    program = rest[0].rsplit("/", 1)[-1] if rest[0].startswith("/") else rest[0]
    name = program.removeprefix("./")
    named = [program]
    arguments = rest[1:]
    if name in _SHELLS | {"python", "python3", "node", "ruby", "deno", "tsx", "ts-node", "php", "perl"}:
        if arguments[:1] == ["-m"] and len(arguments) > 1:
            return _extended([program, "-m", arguments[1]], arguments[2:], room=1)
        script = next((a for a in arguments if not a.startswith("-")), "")
        return _extended([program, script], arguments[1:], room=1) if script else program
    if name in _PREFIXES and arguments:
        return _extended([program, arguments[0]], arguments[1:], room=1)
    if name in _programs().runners and arguments and arguments[0] in _programs().runners[name]:
        return f"{program} {arguments[0]} {base(' '.join(arguments[1:]))}".strip()
    if name in {"docker", "docker-compose", "podman", "kubectl"} and "exec" in arguments[:2]:
        return _inside(program, arguments)
    return _extended(named, arguments, room=2)


def core(stage: str) -> frozenset[str]:
    """Words that say what a command is for (`test`, `build`, `migrate`), whoever runs it."""
    named = base(stage).split()
    told = named[1:] if len(named) > 1 else named
    found: set[str] = set()
    for word in told:
        if word.startswith("-") or word in _WRAPPERS or word in _programs().runners or word in _GENERIC:
            continue
        for piece in re.split(r"[^A-Za-z0-9]+", word):
            if len(piece) > 2 and piece.casefold() not in _GENERIC:
                found.add(_SYNONYMS.get(piece.casefold(), piece.casefold()))
    return frozenset(found)


def only_looks(stage: str) -> bool:
    """Whether a simple command only shows something."""
    rest = _program_words(stage)
    if not rest:
        return True
    program = rest[0].rsplit("/", 1)[-1]
    if program in _programs().looks:
        return not (program == "sed" and any(a.startswith("-i") or a == "--in-place" for a in rest))
    asked = {"--version", "-V", "--help", "-h", "version", "help"} & set(rest[1:])
    if asked and sum(not word.startswith("-") for word in rest) <= 3:
        # `npx --no-install eslint --version` asks whether it is there; its exit code is the answer.
        return True
    if inner := _elsewhere(program, rest):
        return only_looks(inner)
    verbs = _programs().looking_verbs.get(program)
    if verbs is None:
        return False
    if not verbs:
        return True
    plain = [a for a in rest[1:] if not a.startswith("-")]
    return bool(plain) and (
        plain[0] in verbs or (program in {"gh", "docker", "podman", "systemctl"} and bool(verbs & set(plain[:2])))
    )


def _elsewhere(program: str, rest: list[str]) -> str:
    """The command that runs on another machine or in a container; "" if this is none such."""
    if program == "ansible" and "-a" in rest[:-1]:
        return (
            ""
            if {"-m"} & set(rest) and not {"command", "shell"} & set(rest)
            else rest[rest.index("-a") + 1].strip("'\"")
        )
    if program == "ssh":
        plain = [i for i, word in enumerate(rest[1:], 1) if not word.startswith("-")]
        return " ".join(rest[plain[0] + 1 :]) if plain else ""
    if program in {"docker", "podman", "kubectl"} and "exec" in rest:
        return " ".join(_inner(rest[1:])[1])
    return ""


def is_chore(stage: str) -> bool:
    """Whether a simple command only keeps house, or runs code typed in place."""
    rest = _program_words(stage)
    if not rest:
        return True
    program = rest[0].rsplit("/", 1)[-1]
    if program in _programs().chores or _INLINE.search(stage):
        return True
    if program == "sed":
        return True
    plain = next((a for a in rest[1:] if not a.startswith("-")), "")
    return plain in _programs().chore_verbs.get(program, ())


def hides_status(command: str) -> bool:
    """Whether the exit code of the line may not be that of the command that matters."""
    found = parts(command)
    if not found:
        return False
    if "pipefail" in command:
        return False
    if any(len(part.stages) > 1 for part in found):
        return True
    return any(part.joined_by in ("||", ";", "&") for part in found[1:])


def _program_words(stage: str) -> list[str]:
    rest = words(stage)
    while rest:
        if _ASSIGNMENT.match(rest[0]) or rest[0] in _LEADING:
            rest = rest[1:]
        elif rest[0] in _WRAPPERS:
            rest = rest[1:]
            while rest and rest[0].startswith("-"):
                rest = rest[1:]
        elif rest[0] in ("timeout", "gtimeout"):
            rest = rest[1:]
            while rest and (rest[0].startswith("-") or re.match(r"^\d", rest[0])):
                rest = rest[1:]
        else:
            break
    return rest


def _inside(program: str, arguments: list[str]) -> str:
    """What runs in a container: `docker compose exec worker pytest`."""
    before, inner = _inner(arguments)
    named = [program, *before]
    return " ".join([*(n for n in named if not n.startswith("-")), base(" ".join(inner))]).strip()


def _inner(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What names the container, and the command that runs in it."""
    position = arguments.index("exec") + 1
    while position < len(arguments) and arguments[position].startswith("-"):
        position += 2 if arguments[position] in ("-e", "-u", "-w", "-n", "--env", "--user", "--workdir", "-c") else 1
    return arguments[: position + 1], [a for a in arguments[position + 1 :] if a != "--"]


def _extended(named: list[str], arguments: list[str], *, room: int) -> str:
    """`named` with up to `room` words after it that look like sub-commands."""
    skip = False
    for argument in arguments:
        if skip:
            skip = False
            continue
        if argument.startswith("-"):
            if argument == "--":
                break
            skip = bool(_VALUE_FLAGS.match(argument))
            continue
        if room == 0 or not _WORDLIKE.match(argument) or _PATHLIKE.search(argument):
            break
        named.append(argument)
        room -= 1
    return " ".join(named)


def _heredoc_end(command: str, position: int) -> int:
    match = re.compile(r"<<-?\s*(['\"]?)(\w+)\1").match(command, position)
    if not match:
        return position + 2
    end = re.compile(rf"^\s*{re.escape(match[2])}[ \t]*$", re.MULTILINE).search(command, match.end())
    return end.end() if end else len(command)
