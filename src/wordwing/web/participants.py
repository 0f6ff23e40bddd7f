"""People who take part by a link of their own: their secrets, which are not kept, and what is refused."""

import base64
import hashlib
import hmac
import secrets
from typing import ClassVar

from wordwing.errors import WordwingError

TOKEN_BYTES = 16
"""Length of participants' tokens and items' ids: 128 random bits, which nobody guesses."""

IDLE = 24 * 3600
"""After so long without an answer, seconds, what a participant has not done is given to others."""


class UnknownError(WordwingError):
    """There is no such participant or thing, or it is not theirs: nobody learns which."""


class RefusedRequestError(WordwingError):
    """What was sent makes no sense."""


class UnavailableError(WordwingError):
    """Something cannot be done now."""

    state: ClassVar[str]
    """What a page is told, to choose what it shows."""


def new_token() -> str:
    """A participant's secret."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def new_id() -> str:
    """The id of a thing that only those know who were shown it."""
    return secrets.token_hex(TOKEN_BYTES)


def token_hash(token: str) -> bytes:
    """What is kept of a participant's secret."""
    return hashlib.sha256(str(token).encode("utf-8", "replace")).digest()


def plain_id(item_id: str) -> str:
    """What SQLite can be asked for, whatever was sent."""
    return str(item_id).encode("utf-8", "replace").decode()


def invitation(what: str, salt: str) -> str:
    """The token with which a page invites, the same each time it is served: 256 bits that only its file tells.

    Args:
        what: The format of the file, such as "study".
        salt: Its secret, hex.
    """
    secret = hmac.new(bytes.fromhex(salt), f"wordwing {what} invitation 1".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(secret).decode().rstrip("=")
