"""Complete answers in the shape that the prompt of phase 1 asks for, by a careful reader, in five languages."""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    """What the person said in the session, and what is made of it."""

    words: tuple[str, str]
    raw_memory: str
    rollout_summary: str


def _answer(words: tuple[str, str], *, default: str, failure: str, knowledge: str) -> Answer:
    raw = f"""---
description: moved the build to pnpm and repaired the failing date test; the lock file is never edited
task: repair the date test
task_group: shop
task_outcome: success
cwd: /home/dev/shop
keywords: pnpm, vitest, ERR_PNPM_OUTDATED_LOCKFILE, TZ
---

### Task 1: repair the date test

task: repair the date test
task_group: shop
task_outcome: success

Preference signals:
- when packages are added, the person said: "{words[0]}" -> {default}
- after the first commit: "{words[1]}" -> wait to be asked before a commit

Reusable knowledge:
- {knowledge}

Failures and how to do differently:
- {failure}

References:
- [1] `TZ=UTC pnpm vitest run` -> `12 passed`
- [2] `src/dates.test.ts`: 3 lines
"""
    summary = f"""# The date test runs in any time zone

Rollout context: repair one test in /home/dev/shop, nothing else

## Task 1: repair the date test

Outcome: success

Preference signals:
- when packages are added: "{words[0]}" -> {default}

Key steps:
- the failing assertion was read, then the zone set [1]

Failures and how to do differently:
- {failure}

Reusable knowledge:
- {knowledge}

References:
- [1] `TZ=UTC pnpm vitest run` -> `12 passed`
"""
    return Answer(words=words, raw_memory=raw, rollout_summary=summary)


ANSWERS = {
    "en": _answer(
        ("always use pnpm here, not npm", "don't commit unless I say so"),
        default="install with pnpm in this repository",
        failure="Run `TZ=UTC pnpm vitest run` when dates are one day off; the test read the machine's zone",
        knowledge="`vitest` reads the zone once, at its start (a run with TZ set in the test still failed)",
    ),
    "de": _answer(
        ("nimm hier immer pnpm, nie npm", "bitte nichts committen, bevor ich es sage"),
        default="in diesem Repository mit pnpm installieren",
        failure="`TZ=UTC pnpm vitest run` nehmen, wenn Daten um einen Tag falsch sind; der Test las die lokale Zone",
        knowledge="`vitest` liest die Zone nur einmal beim Start",
    ),
    "fr": _answer(
        ("utilise toujours pnpm ici, pas npm", "ne commite rien sans que je le demande"),
        default="installer avec pnpm dans ce dépôt",
        failure="lancer `TZ=UTC pnpm vitest run` quand les dates ont un jour de trop ; le test lisait le fuseau local",
        knowledge="`vitest` lit le fuseau une seule fois, au démarrage",
    ),
    "zh": _answer(
        ("这个仓库一律用 pnpm，不要用 npm", "没让你提交就不要提交"),
        default="在这个仓库里用 pnpm 安装",
        failure="日期差一天时运行 `TZ=UTC pnpm vitest run`；测试读了本机时区",
        knowledge="`vitest` 只在启动时读一次时区",
    ),
    "ja": _answer(
        ("このリポジトリでは必ず pnpm を使って、npm は使わないで", "頼むまでコミットしないで"),
        default="このリポジトリでは pnpm で入れる",
        failure="日付が一日ずれるときは `TZ=UTC pnpm vitest run` を使う。テストがマシンの時間帯を読んでいた",
        knowledge="`vitest` は起動時に一度だけ時間帯を読む",
    ),
}
