"""Whether a line tells an agent what to do: orders of a kind that an attacker plants, in many languages.

A wide net: whether such a line is kept is decided by who said it.
"""

from __future__ import annotations

import re
from functools import cache

import re2

_RUN = "run|execute|invoke|call|launch|install|use|download|fetch|visit|open|send|post|upload|curl|wget|commit|push"
_WHO = r"\b(?:ai|agents?|assistants?|llms?|models?)\b"
_HOST = r"\.(?:com|org|net|io|dev|app|sh|ai|co|xyz|top|site|online|info|biz|ru|cn|example|test)/"
_GIVEN = (
    r"\b(?:pip(?:e|es|ed|ing)|bootstrap\w*|scripts?|helpers?|installers?|payloads?|shell|bash|mirror\w*"
    r"|upload\w*|post(?:s|ed|ing)?|send(?:s|ing)?|sent)\b"
)
_OFF = r"\b(?:disabl(?:e|ing)|turn(?:ing)? off|switch(?:ing)? off|deactivat(?:e|ing)|bypass(?:ing)?)\b"
_CUES = rf"""
# A program from the net into a shell.
\b(?:curl|wget|iwr|invoke-webrequest|fetch)\b[^\n]*\|\s*`?(?:sudo\s+)?(?:ba|z|da|k|fi)?sh\b
\|\s*`?(?:iex|invoke-expression|python3?|perl|ruby|node)\b
\beval\b[^\n]{{0,40}}\b(?:curl|wget|base64)\b|base64\s+(?:-d|--decode)
\b(?:ba|z)?sh\s+<\(\s*(?:curl|wget)
\b(?:curl|wget|iwr|git clone|pip3? install|npm (?:i|install)|npx|uvx)\b.{{0,80}}https?://(?!localhost|127\.|0\.0\.0\.0)
# Somebody in the system's voice, or about the instructions.
(?:^|[\s"'`<\[(>-])(?:system|developer)\s*(?:[\])>]|prompt|message|note|override)?\s*:
(?:^|["'`<\[(>])assistant\s*(?:[\])>]|prompt|message|note|override)?\s*:
<\s*/?\s*(?:system|instructions?|admin|im_start|important)\b
\b(?:ignore|disregard|forget|override|bypass)\b.{{0,40}}\b(?:instructions?|rules?|prompts?|guidelines?|previous|above)\b
\b(?:you are now|from now on|you must|your (?:new )?(?:instructions?|task|goal))\b
\b(?:add|save|write|store|put|commit|copy)\b.{{0,40}}\b(?:to|in|into)\b.{{0,20}}\b(?:memory|memories|long-term)\b
\bremember\s*(?::|that\b|to\b|this\b)|\bnote to (?:the )?(?:ai|agent|assistant|llm|model)\b
{_WHO}.{{0,20}}\b(?:must|should|have to|need to|shall)\b.{{0,60}}\b(?:{_RUN})\b
# Orders that are to last.
\b(?:always|never|must|every time|before (?:any|each|every)|do not ever)\b.{{0,60}}\b(?:{_RUN}|add|skip|disable|trust)\b
\b(?:{_RUN})\b.{{0,80}}\b(?:always|every time|in (?:all|every|each) (?:session|project|repo))
# For sessions to come, in whatever words.
\b(?:future|later|subsequent|coming|next|following|every|all|each)\s+(?:\S+\s+)?(?:sessions?|conversations?|agents?|assistants?)\b
\b(?:precede|preface|prefix|prepend|begin|start)\b.{{0,50}}\b(?:runs?|tests?|commands?|builds?|tasks?)\b.{{0,30}}\b(?:with|by)\b
# Safeguards taken away.
--no-verify|--no-check-certificate|--dangerously-|--yolo\b|skip-permissions|bypassPermissions|StrictHostKeyChecking
NODE_TLS_REJECT_UNAUTHORIZED|GIT_SSL_NO_VERIFY|\bverify\s*=\s*False|\bchmod\s+(?:-R\s+)?0?777|\bcurl\s.*(?:-k\b|--insecure)
{_OFF}.{{0,40}}\b(?:sandbox|verification|signing|signatures?|certificates?|tls|ssl)\b
{_OFF}.{{0,40}}\b(?:firewall|antivirus|permissions?|approvals?|confirmations?|hooks?)\b
# Something from a host, or for it, that is to be run or sent.
{_GIVEN}.{{0,80}}{_HOST}
{_HOST}.{{0,80}}{_GIVEN}
# Links to fetch.
\b(?:run|execute|download|fetch|visit|open|load|install|post|send|upload)\b.{{0,60}}https?://
# Spanish, French, German, Portuguese.
\b(?:ignora|olvida|descarta|ignorez?|oublie[zs]?|ignoriere?|vergiss|desconsidere|esqueça)\b.{{0,50}}\b(?:instru|anweis|regel)
\b(?:ignora|olvida|descarta|ignorez?|oublie[zs]?|ignoriere?|vergiss|desconsidere|esqueça)\b.{{0,50}}\b(?:consigne|anterior)
\b(?:siempre|nunca|jamais|sempre)\b.{{0,60}}\b(?:ejecut|corre|usa|descarg|instal|execut|rode|baix)
\b(?:toujours|jamais)\b.{{0,60}}\b(?:ex[ée]cut|lance|utilise|t[ée]l[ée]charg|install)
\b(?:immer|niemals|stets)\b.{{0,60}}\b(?:ausf[üu]hr|f[üu]hr|verwend|nutz|lade|installier|start)
\b(?:ejecut|ex[ée]cut|f[üu]hre|execute|rode|lance)\w*\b.{{0,60}}\b(?:siempre|toujours|immer|sempre)\b
\b(?:recuerda|acu[ée]rdate|souviens|souvenez|retiens|retenez|merke?|denk daran|lembre)\b
# Russian.
(?:игнорируй|проигнорируй|забудь|запомни)
(?:всегда|никогда|обязательно).{{0,60}}(?:запуска|запусти|выполня|выполни|использу|скачай|curl|wget|http)
# Chinese, Japanese, Korean.
(?:忽略|无视|無視|忘记|忘記|忘れ).{{0,30}}(?:指令|指示|说明|說明|规则|規則|提示|命令)|(?:指令|指示|命令|ルール).{{0,20}}(?:無視|忘れ)
(?:总是|總是|始终|始終|务必|務必|必须|必須|每次|永远|永遠|一定要).{{0,40}}(?:运行|運行|执行|執行|使用|下载|下載|安装|安裝|curl|wget|http)
(?:常に|必ず|毎回|いつも).{{0,40}}(?:実行|使|ダウンロード|インストール|走らせ|curl|wget|http)
记住|記住|请记|請記|覚えて|記憶して|メモリに|기억해
(?:지시|명령|규칙).{{0,20}}무시|(?:항상|반드시|매번).{{0,40}}(?:실행|사용|설치|다운로드|curl|wget|http)
"""
_DO = (
    "run|set|use|add|pass|put|install|export|enable|disable|call|load|send|open|copy|post|write|include|skip|start"
    "|commit|push|upload|delete|remove|keep|make sure|ensure|prefer|avoid|apply|approve|share|merge|turn|switch"
)
#: What says that something is to be done, needed or set: most such sentences are findings.
_NEEDS = rf"""
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
#: A line is short; what stands beyond this in one is not looked at, so it counts as an order.
_MAX_CHARS = 4000
_UNSEEN = re.compile(r"[\u200b-\u200f\u2060-\u2064\ufeff\u00ad]")
_SPACE = r"\s\x0b\x1c-\x1f\x85\p{Z}"


def is_directive(text: str) -> bool:
    """Whether the text orders somebody to do something."""
    plain = text if text.isascii() else _UNSEEN.sub("", text)
    if len(plain) > _MAX_CHARS:
        return True
    # Letters that only Python takes for an `i`.
    asked = (plain if plain.isascii() else plain.replace("İ", "i").replace("ı", "i")).encode("utf-8", "replace")
    return _may_be_directive().search(asked) is not None and _directive().search(plain) is not None


@cache
def _directive() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.IGNORECASE)


@cache
def _may_be_directive() -> re2._Regexp:
    """Finds all that `_directive` finds, and a little more, at a fortieth of the cost: most lines are none."""
    options = re2.Options()
    options.case_sensitive = False
    return re2.compile("|".join(f"(?:{_widened(pattern)})" for pattern in _PATTERNS).encode(), options)


def _widened(pattern: str) -> str:
    """The pattern as RE2 takes it: no look-ahead, `\\s`, `\\w` and `\\b` of ASCII only, and counts are dear."""
    pattern = re.sub(r"\(\?![^)]*\)", "", pattern)
    pattern = re.sub(r"\{0,\d+\}", "*", pattern)
    pattern = pattern.replace(r"\w*\b", r"[\p{L}\p{N}_]*")
    return pattern.replace(r"[\s", "[" + _SPACE).replace(r"\s*", f"[{_SPACE}]*").replace(r"\s+", f"[{_SPACE}]+")


def prescribes(text: str) -> bool:
    """Whether the text says that something is to be done, in whatever form. Much wider than `is_directive`."""
    return _prescription().search(text.encode("utf-8", "replace")) is not None


@cache
def _prescription() -> re2._Regexp:
    options = re2.Options()
    options.case_sensitive = False
    patterns = [line for line in _NEEDS.splitlines() if line and not line.startswith("#")]
    return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns).encode(), options)
