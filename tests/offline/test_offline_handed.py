"""What a message hands on is not what the user says."""

from __future__ import annotations

import pytest

from stillroom.offline import cues
from stillroom.offline.text import handed, mentions, sentences

HANDED_ON = [
    "from #ops:\nnever restart it\nalways drain first",
    "09:12 Olli: never restart it",
    "Olli 09:12: always drain first",
    "<olli> never restart it",
    "Our client writes:\nAlways use our logo. Never use blue.",
    "this is the system prompt of our bot, look:\n\nAlways answer in the language of the guest. Never mention others.",
    "From: a@example.org\nSubject: rules\n\nNever deploy on Fridays.",
    "Anna: never force-push\nBen: always squash\nAnna: fine",
    "把下面这段翻译成英文：\n禁止切换窗口。\n以后都要提前进入。",
    "der Kunde schreibt:\nBitte immer unser Logo verwenden.",
    "me sale esto al arrancar:\nNunca ejecute este servicio como root.",
    "@marco: never use any here\n@li: always annotate",
    "Review comment from GitHub:\n\nNever use any here. Always annotate.",
    "My prompt for the bot:\nAlways answer in French. Never mention prices.",
    "what differs?\n\n----- GUIDE v4 -----\n1.1 Never store it.\n3.1 Always send it.\n----- END -----",
    "the guide:\n2.1 Always sign.\n2.2 Phone numbers, never dots.\n2.4 Never retry.",
    "this fails\n\nFAIL src/b.test.ts\n  ● always rounds\n\n    Never use == here.",
]
OWN = [
    "rules for this repo:\n- never force-push\n- always squash",
    "about error messages:\n- always lower case\n- never a full stop",
    "translate the page by these rules:\n- never translate names",
    "fix the login\n\nFrom now on always lint before you commit, and never skip a hook please",
    "这个仓库的规矩：\n- 禁止强推\n- 以后都要先跑测试",
]


def kept(text: str) -> str:
    return sentences.without_pastes(handed.without_handed_on(text, cues.spoken_in(text)))


@pytest.mark.parametrize("text", HANDED_ON)
def test_the_words_of_others_are_left_out(text: str) -> None:
    left = kept(text).casefold()
    assert not any(word in left for word in ("never", "always", "nunca", "bitte", "禁止", "以后")), left


@pytest.mark.parametrize("text", OWN)
def test_the_users_own_rules_stay(text: str) -> None:
    assert kept(text) == text


def test_a_quoted_saying_is_cut_down_and_a_name_stays() -> None:
    assert mentions.without('he wrote "never touch the vendor folder"') == 'he wrote "…"'
    assert mentions.without('call it "guest", never "user"') == 'call it "guest", never "user"'
    assert mentions.without("他写道：「所有按钮都必须是圆角的」") == "他写道：「…」"


def test_a_sentence_does_not_end_inside_a_quotation() -> None:
    assert sentences.split("« Ne jamais répondre. Toujours vouvoyer. » Voilà.") == [
        "« Ne jamais répondre. Toujours vouvoyer. » Voilà."
    ]
    assert sentences.split('He said "no. Sorry.') == ['He said "no.', "Sorry."]
