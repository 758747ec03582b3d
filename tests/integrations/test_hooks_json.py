from __future__ import annotations

import json

from stillroom.integrations.hooks_json import put_hook, take_hooks


def test_handlers_go_with_their_groups_but_for_those_of_the_events_to_keep() -> None:
    ours = {"type": "command", "command": "stillroom-hook codex session-start"}
    theirs = {"type": "command", "command": "notify"}
    both = {"SessionStart": [{"hooks": [ours]}], "Stop": [{"hooks": [theirs, ours]}, {"hooks": [ours]}]}
    text = json.dumps({"hooks": both})
    assert json.loads(take_hooks(text, keep=("SessionStart",))) == {
        "hooks": {"SessionStart": both["SessionStart"], "Stop": [{"hooks": [theirs]}]}
    }
    assert json.loads(take_hooks(text))["hooks"]["Stop"] == [{"hooks": [theirs]}]
    assert ours not in json.loads(take_hooks(text))["hooks"].get("SessionStart", [])


def test_a_second_handler_of_ours_goes_when_the_first_is_renewed() -> None:
    old = {"type": "command", "command": "/old/stillroom-hook codex session-start", "timeout": 9}
    text = json.dumps({"hooks": {"SessionStart": [{"hooks": [old]}, {"hooks": [old]}]}})
    new = put_hook(text, "SessionStart", {"type": "command", "command": "stillroom-hook codex session-start"})
    renewed = {**old, "command": "stillroom-hook codex session-start"}
    assert json.loads(new) == {"hooks": {"SessionStart": [{"hooks": [renewed]}]}}
