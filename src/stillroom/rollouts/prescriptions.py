"""Whether a sentence says what is to be done, needed or set, in plain words of nine languages.

Wider than `directives`: most such sentences are findings. It is asked only of a line that repeats what was printed.
"""

from __future__ import annotations

from functools import cache

import re2

_DO = (
    "run|set|use|add|pass|put|install|export|enable|disable|call|load|send|open|copy|post|write|include|skip|start"
    "|commit|push|upload|delete|remove|keep|make sure|ensure|prefer|avoid|apply|approve|share|merge|turn|switch"
)
_CUES = rf"""
# English.
\b(?:needs?|needed|must|requires?|required|requirement|shall|should|ought|mandatory|necessary|customary|convention|policy|wants?|expects?|supposed)\b
\b(?:has|have|had|is|are|was|were) to (?:be )?\w
\bonly (?:\w+ )*(?:when|if|with|after|once|because|by|through|via)\b
\b(?:ahead of|prior to|recommended?|instead of|rather than)\b
\b(?:never|always|every time|before (?:any|each|every|the)|first)\b
(?:^|[.:;,>(*|\n-]\s*)(?:please )?(?:{_DO})\b
# German.
\b(?:muss|müssen|musst|soll|sollen|sollte|sollten|braucht?|brauchen|benötig(?:t|en)|verlangt|erforder\w*|notwendig|nötig)\b
\b(?:nur (?:wenn|mit|nach|durch)|vorher|zuerst|immer|niemals|stets|erwartet|ist zu \w+en)\b
# French.
\b(?:doit|doivent|devez|faut|besoin|exige(?:nt)?|requiert|nécessit\w*|nécessaire)\b
\b(?:obligatoire|attend|toujours|jamais|avant de)\b
# Spanish and Portuguese.
\b(?:debe|deben|deberían?|hay que|tiene que|tienen que|necesitan?|requieren?|exigen?|hace falta|siempre|nunca|antes de)
\b(?:deve|devem|precisam?|é preciso|requer|exigem?|necess[aá]ri[oa]|sempre|tem que|têm que)
# Russian.
(?:нужн|нужен|надо|должн|должен|требу|необходим|следует|обязательн|всегда|никогда)
# Chinese, Japanese, Korean.
需要|必须|必須|应该|應該|应当|要求|务必|務必|得先|只有|才能|必要|べき|なければ|ないと|してください|必ず|要る|해야|필요|반드시|요구
"""
_PATTERNS = [line for line in _CUES.splitlines() if line and not line.startswith("#")]


def prescribes(text: str) -> bool:
    """Whether the text says that something is to be done, in whatever form."""
    return _pattern().search(text.encode("utf-8", "replace")) is not None


@cache
def _pattern() -> re2._Regexp:
    options = re2.Options()
    options.case_sensitive = False
    return re2.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS).encode(), options)
