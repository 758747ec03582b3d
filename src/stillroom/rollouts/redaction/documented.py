"""Values that vendors print in their documentation for everybody to see: no secrets, and what a lesson may rest on.

Most examples show by their form what they are (`EXAMPLE`, `xxxx`, `your-key`). These don't. They stand here by their
hashes, because as they are they would set off every scanner of secrets that meets this file.
"""

from __future__ import annotations

_DIGEST_BYTES = 12
_DOCUMENTED = frozenset(
    {
        "7a404380fb3eb577d183b293",  # Stripe's API reference
        "6c0801bf16c3d97b6774390c",  # Stripe, until 2019
        "dccd61e0d34f3de424d0551b",  # GitHub, of an OAuth app
        "c6c2fbab6a590f6b5dea3ef6",  # GitHub, the same as a personal token
        "5396be0c9200baa2def6475b",  # GitHub, of a GitHub app
        "bca764b3753960e9e694cc92",  # Telegram, of a bot
        "5915ac9487dbc93e3cf1f608",  # Discord, of a bot
        "8e43bd9fd12de0c0211b54c3",  # Azure, the key that every storage emulator has
        "7bb3075a939491d4cd95d3d5",  # RFC 6750
        "1345b62107b787311bd8c1a5",  # RFC 7617
    }
)


def is_documented(secret: bytes) -> bool:
    """True for a published example, alone or after its scheme (`Bearer …`)."""
    import hashlib  # it loads OpenSSL, and most texts hold nothing that looks like a secret

    value = secret.rpartition(b" ")[2]
    return hashlib.blake2b(value, digest_size=_DIGEST_BYTES).hexdigest() in _DOCUMENTED
