"""Keys that sign MAVLink messages, as files hold them."""

import pytest

from wordwing.errors import WordwingError
from wordwing.flight.mavlink.signing import read_key

KEY = bytes(range(32))


@pytest.mark.parametrize("content", [KEY, KEY.hex().encode(), KEY.hex().upper().encode() + b"\n"])
def test_a_key_is_32_bytes_or_64_digits(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    assert read_key(tmp_path / "key") == KEY


@pytest.mark.parametrize("content", [b"", KEY[:31], KEY.hex()[:-2].encode(), b"x" * 64, bytes([200]) * 33])
def test_anything_else_is_refused(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(WordwingError, match="a signing key is 32 bytes or 64 hexadecimal digits"):
        read_key(tmp_path / "key")
