"""The tools that the consolidation agent is shown: a name, a sentence, a schema each. The jail's worker runs them."""

from __future__ import annotations

from typing import Any, NamedTuple


class ToolText(NamedTuple):
    """What the model is told of one tool."""

    description: str
    properties: dict[str, dict[str, Any]]
    required: tuple[str, ...]

    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": self.properties,
            "required": list(self.required),
            "additionalProperties": False,
        }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str, least: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "description": description}


_PATCH = """Change files by a patch. All of it is done, or nothing. The form:
*** Begin Patch
*** Update File: path
@@ a line above the change, where the place is not clear without it
 a line that stays
-a line that goes
+a line that comes
*** Add File: path
+each line of the new file
*** Delete File: path
*** End Patch
`*** Move to: path` under `*** Update File` renames the file. Lines that stay or go are exactly the file's. What changes
stands below the line after `@@`: a heading itself is changed below a bare `@@`."""

TOOLS: dict[str, ToolText] = {
    "list": ToolText(
        "List the files and folders below a folder, with sizes.",
        {
            "path": _text("A folder; without it, all of the memory folder."),
            "depth": _number("Levels to go down; 2 without it.", 1),
        },
        (),
    ),
    "read": ToolText(
        "Read a text file, or a part of it. A long answer is cut and says where to go on.",
        {
            "path": _text("A file."),
            "first_line": _number("Where to begin; 1 without it.", 1),
            "max_lines": _number("How many lines at most.", 1),
        },
        ("path",),
    ),
    "search": ToolText(
        "Find lines in all files, or below one path. Answers `path:line: text`.",
        {
            "query": _text("Text to find."),
            "path": _text("A file or folder to search in."),
            "regex": {"type": "boolean", "description": "The query is a regular expression (Python's)."},
            "case_sensitive": {"type": "boolean", "description": "Upper and lower case differ."},
            "context_lines": _number("Lines to show around each, at most 5.", 0),
        },
        ("query",),
    ),
    "write": ToolText(
        "Write a whole file, new or in place of the old one, or add to its end. For a change in a large file take "
        "`apply_patch`.",
        {
            "path": _text("A file."),
            "content": _text("All of its text; with `append`, what is added."),
            "append": {"type": "boolean", "description": "Add to the end of the file: for one that is long to write."},
        },
        ("path", "content"),
    ),
    "apply_patch": ToolText(_PATCH, {"patch": _text("The patch.")}, ("patch",)),
    "shell": ToolText(
        "Run a command with a POSIX shell in the memory folder. There is no network and no other folder, and "
        "everything that the command started ends with it.",
        {
            "command": _text("The command line."),
            "timeout_seconds": _number("When to give it up; 30 without it.", 1),
        },
        ("command",),
    ),
}
