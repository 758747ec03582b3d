"""The table of secrets that can be told by their own form, whatever stands around them.

`head` is found anywhere and has a bounded length, so that a search stays linear; `tail` is the class of the characters
that may follow it; `whole` says that no word character may follow. Patterns are RE2 over bytes: classes are ASCII.
Secrets that only their surroundings give away are in `assignments` (`password: …`), `credentials` (`Cookie: …`),
`private_keys` and `vendors`.
"""

from __future__ import annotations

from typing import NamedTuple

_ALNUM = "[A-Za-z0-9]"
_URL64 = "[A-Za-z0-9_-]"
_BASE64 = "[A-Za-z0-9+/=]"


class TokenRule(NamedTuple):
    """One kind of token."""

    kind: str
    head: str
    tail: str = ""
    #: No letter or digit may follow: the token has a fixed length.
    whole: bool = False


TOKEN_RULES: tuple[TokenRule, ...] = (
    TokenRule("anthropic_key", r"sk-ant-[A-Za-z0-9_-]{20}", _URL64),
    TokenRule("openrouter_key", r"sk-or-v1-[0-9a-f]{32}", "[0-9a-f]"),
    TokenRule("langfuse_key", r"sk-lf-[0-9a-f-]{36}", whole=True),
    TokenRule("openai_key", r"sk-(?:proj|svcacct|admin|service|None)-[A-Za-z0-9_-]{20}", _URL64),
    TokenRule("openai_key", r"sk-[A-Za-z0-9]{20}", _ALNUM),
    TokenRule("aws_access_key_id", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}", whole=True),
    TokenRule("google_api_key", r"AIza[A-Za-z0-9_-]{35}", _URL64),
    TokenRule("google_oauth_token", r"ya29\.[A-Za-z0-9_-]{20}", "[A-Za-z0-9_.-]"),
    TokenRule("google_oauth_secret", r"GOCSPX-[A-Za-z0-9_-]{20}", _URL64),
    TokenRule("google_refresh_token", r"1//0[A-Za-z0-9_-]{30}", _URL64),
    TokenRule("github_token", r"gh[pousr]_[A-Za-z0-9]{30}", _ALNUM),
    TokenRule("github_token", r"github_pat_[A-Za-z0-9_]{22}", "[A-Za-z0-9_]"),
    TokenRule(
        "gitlab_token",
        r"(?:gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct|wt)|gloas)-[A-Za-z0-9_-]{20}",
        "[A-Za-z0-9_.-]",
    ),
    TokenRule("gitlab_token", r"GR1348941[A-Za-z0-9_-]{20}", _URL64),
    TokenRule("slack_token", r"xox[abcdeoprs]-[A-Za-z0-9-]{10}", "[A-Za-z0-9%-]"),
    TokenRule("slack_token", r"xoxe\.xox[bp]-[A-Za-z0-9-]{10}", "[A-Za-z0-9-]"),
    TokenRule("slack_token", r"xapp-[0-9]-[A-Za-z0-9-]{10}", "[A-Za-z0-9-]"),
    TokenRule("stripe_key", r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16}", _ALNUM),
    TokenRule("stripe_webhook_secret", r"whsec_[A-Za-z0-9+/=]{20}", _BASE64),
    TokenRule("npm_token", r"npm_[A-Za-z0-9]{30}", _ALNUM),
    TokenRule("pypi_token", r"pypi-AgE[A-Za-z0-9_-]{30}", _URL64),
    TokenRule("huggingface_token", r"(?:hf_|api_org_)[A-Za-z0-9]{30}", _ALNUM),
    TokenRule("sendgrid_key", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16}", _URL64),
    TokenRule("twilio_key", r"SK[0-9a-f]{32}", whole=True),
    TokenRule("digitalocean_token", r"do[opr]_v1_[0-9a-f]{40}", "[0-9a-f]"),
    TokenRule("shopify_token", r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}", "[0-9a-fA-F]"),
    TokenRule("databricks_token", r"dapi[0-9a-f]{32}(?:-[0-9])?", whole=True),
    TokenRule("groq_key", r"gsk_[A-Za-z0-9]{40}", _ALNUM),
    TokenRule("xai_key", r"xai-[A-Za-z0-9]{40}", _ALNUM),
    TokenRule("perplexity_key", r"pplx-[A-Za-z0-9]{40}", _ALNUM),
    TokenRule("replicate_token", r"r8_[A-Za-z0-9]{32}", _ALNUM),
    TokenRule("nvidia_key", r"nvapi-[A-Za-z0-9_-]{40}", _URL64),
    TokenRule("langsmith_key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}", "[0-9a-f_]"),
    TokenRule("tavily_key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20}", _ALNUM),
    TokenRule("vault_token", r"hv[sbr]\.[A-Za-z0-9_-]{20}", _URL64),
    TokenRule("doppler_token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{36}", _URL64),
    TokenRule("pulumi_token", r"pul-[0-9a-f]{40}", whole=True),
    TokenRule("grafana_token", r"gl(?:c|sa)_[A-Za-z0-9+/=_]{32}", "[A-Za-z0-9+/=_]"),
    TokenRule("newrelic_key", r"NR(?:AK|AA|RA|II)-[A-Za-z0-9]{24}", _ALNUM),
    TokenRule("sentry_token", r"sntry[su]_[A-Za-z0-9+/=_]{32}", "[A-Za-z0-9+/=_-]"),
    TokenRule("supabase_key", r"(?:sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20})", _URL64),
    TokenRule("planetscale_token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{30}", "[A-Za-z0-9_.-]"),
    TokenRule("postman_key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "[0-9a-f]"),
    TokenRule("docker_token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20}", _URL64),
    TokenRule("atlassian_token", r"AT(?:ATT3|CTT3|BB)[A-Za-z0-9_=-]{24}", "[A-Za-z0-9_=.-]"),
    TokenRule("linear_key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32}", _ALNUM),
    TokenRule("notion_token", r"ntn_[A-Za-z0-9]{40}", _ALNUM),
    TokenRule("figma_token", r"fig[dou]_[A-Za-z0-9_-]{36}", _URL64),
    TokenRule("airtable_token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", whole=True),
    TokenRule("mailgun_key", r"key-[0-9a-f]{32}", whole=True),
    TokenRule("rubygems_key", r"rubygems_[0-9a-f]{48}", whole=True),
    TokenRule("netlify_token", r"nf[pcoub]_[A-Za-z0-9]{36}", _ALNUM),
    TokenRule("circleci_token", r"CCIPAT_[A-Za-z0-9_]{30}", "[A-Za-z0-9_]"),
    TokenRule("square_token", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22}", _URL64),
    TokenRule("plaid_token", r"access-(?:sandbox|development|production)-[0-9a-f-]{36}", whole=True),
    TokenRule("age_key", r"AGE-SECRET-KEY-1[A-Z0-9]{40}", "[A-Z0-9]"),
)
"""Earlier rules win where two begin at the same place."""

VENDOR_EXAMPLES = ("EXAMPLE", "Example", "example")
"""AWS, Google and others mark the values in their documents by this word inside the token itself."""
