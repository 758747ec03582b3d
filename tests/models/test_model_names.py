from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.config import Memories, Provider, Settings
from stillroom.errors import ConfigError
from stillroom.models import check_model
from stillroom.models.names import Endpoint, PydanticName, resolve

HOME = Path("/nowhere")
LOCAL = Settings(
    home=HOME,
    providers={
        "local": Provider(kind="openai-chat", base_url="http://127.0.0.1:8080/v1/", context_window=32_000),
        "tiny": Provider(kind="openai-chat", base_url="http://127.0.0.1:8080/v1/", context_window=2048),
        "proxy": Provider(kind="openai-responses", base_url="https://llm.example/v1", api_key_env="PROXY_KEY"),
    },
)


def test_a_configured_provider_is_spoken_to_directly():
    assert resolve("local:qwen3:8b", LOCAL, {}) == Endpoint(
        name="local:qwen3:8b",
        model="qwen3:8b",
        kind="openai-chat",
        base_url="http://127.0.0.1:8080/v1",
        api_key=None,
        context_window=32_000,
        official=False,
    )


def test_the_key_comes_from_the_named_variable():
    resolved = resolve("proxy:m", LOCAL, {"PROXY_KEY": "k"})
    assert isinstance(resolved, Endpoint)
    assert resolved.api_key == "k"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("openai:m", "openai-responses"), ("openai-responses:m", "openai-responses"), ("openai-chat:m", "openai-chat")],
)
def test_openai_needs_no_sdk(name, kind):
    resolved = resolve(name, LOCAL, {"OPENAI_API_KEY": "k"})
    assert isinstance(resolved, Endpoint)
    assert (resolved.kind, resolved.base_url, resolved.official) == (kind, "https://api.openai.com/v1", True)


def test_another_base_url_needs_no_key_and_has_no_known_price():
    resolved = resolve("openai:m", LOCAL, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert isinstance(resolved, Endpoint)
    assert (resolved.official, resolved.api_key, resolved.loopback) == (False, None, True)


def test_other_names_are_left_to_pydantic_ai():
    assert resolve("anthropic:claude", LOCAL, {}) == PydanticName(name="anthropic:claude", provider="anthropic")


@pytest.mark.parametrize(
    ("name", "environ", "says"),
    [
        ("gpt-6", {}, "not the name of a model"),
        ("openai:", {}, "not the name of a model"),
        (":gpt", {}, "not the name of a model"),
        ("openai:gpt", {}, "OPENAI_API_KEY"),
        ("proxy:m", {}, "PROXY_KEY"),
        ("tiny:m", {}, "a window of 2,048 tokens, and 4,096 is the least"),
        ("openai:gpt", {"OPENAI_BASE_URL": "file:///etc/passwd"}, "not a URL"),
        ("openai:gpt", {"OPENAI_BASE_URL": "http://[oops/v1"}, "not a URL"),
        ("openai:gpt", {"OPENAI_API_KEY": "two\nlines"}, "characters that no key has"),
        ("nosuch:model", {}, "no provider is called `nosuch`"),
    ],
)
def test_a_name_that_cannot_be_used_is_said_at_the_start(name, environ, says):
    with pytest.raises(ConfigError, match=says) as caught:
        check_model(name, LOCAL, environ=environ)
    assert caught.value.hint


@pytest.mark.slow  # the SDK is imported
def test_a_missing_key_of_an_sdk_is_said_at_the_start(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        check_model("anthropic:claude-haiku-4-5", LOCAL, environ={})


def test_offline_needs_nothing():
    check_model("offline", LOCAL, environ={})


def test_checking_and_opening_a_direct_model_imports_no_sdk():
    code = """
import sys
from pathlib import Path
from stillroom.config import Memories, Provider, Settings
from stillroom.models import check_model, open_structured
from stillroom.testing import ListLedger, FixedClock
settings = Settings(home=Path("/"), providers={"l": Provider(kind="openai-chat", base_url="http://127.0.0.1:1/v1")})
check_model("l:m", settings)
open_structured("l:m", settings, ledger=ListLedger(), clock=FixedClock(0), redact=str)
print({"pydantic_ai", "openai", "pydantic", "genai_prices"} & set(sys.modules))
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environ)
    assert done.stderr == ""
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(("window", "fits"), [(None, True), (8192, True), (8191, False)])
def test_a_model_that_consolidates_needs_a_larger_window(window: int | None, fits: bool):
    provider = Provider(kind="openai-chat", base_url="http://127.0.0.1:8080/v1", context_window=window)
    settings = Settings(home=HOME, memories=Memories(consolidation_model="l:m"), providers={"l": provider})
    check_model("l:other", settings)
    if fits:
        check_model("l:m", settings)
    else:
        with pytest.raises(ConfigError, match="a window of 8,191 tokens; a consolidation takes 8,192 at least"):
            check_model("l:m", settings)
