import socket
import subprocess
import sys

import httpx
import pytest

from running_server import wait_until
from wordwing.commands.common import address
from wordwing.commands.studio import studio
from wordwing.errors import WordwingError
from wordwing.studio.resources import load_policies
from wordwing.web.sockets import bind_socket


def test_the_address_is_printed_with_its_token_where_one_is_needed():
    assert address("127.0.0.1", 8080, None) == "http://127.0.0.1:8080/"
    assert address("::1", 80, None) == "http://[::1]:80/"
    assert address("0.0.0.0", 8080, "abc") == f"http://{socket.gethostname()}:8080/?token=abc"


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WordwingError, match=f"port {port} of 127.0.0.1 cannot be used"):
            studio(port=port)
    bind_socket("127.0.0.1", port, "TCP", "--port").close()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"port": 0}, "--port"),
        ({"port": 70_000}, "--port"),
        ({"days": float("nan")}, "--days"),
        ({"host": "no.such.host.invalid"}, "--host"),
    ],
)
def test_each_mistake_is_one_sentence(options, sentence):
    with pytest.raises(WordwingError, match=sentence):
        studio(**options)


@pytest.mark.parametrize(
    ("policies", "sentence"),
    [
        (["oracle"], "does not read"),
        (["x=stop"], "does not read"),
        ([], "empty"),
        (["no-such-policy"], "no policy is called"),
        (["pvn2-sureal", "pvn2-sureal"], "two policies"),
        (["a/b=pvn2-sureal"], "no name that fits"),
    ],
)
def test_only_learned_policies_with_names_of_their_own_fly(policies, sentence):
    with pytest.raises(WordwingError, match=sentence):
        load_policies(policies)


def test_without_the_extra_a_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(WordwingError, match=r"pip install 'wordwing\[studio\]'"):
        studio()


def test_wordwing_works_without_the_extra():
    code = "import sys; sys.modules['fastapi'] = sys.modules['uvicorn'] = None; import wordwing.commands.studio"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_opens_a_studio_with_the_policy_that_comes_with_wordwing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    keep = f"from pathlib import Path; keep = Path({str(tmp_path)!r})"
    code = f"from wordwing.commands.studio import studio; {keep}; studio(port={port}, keep=keep)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert f"http://127.0.0.1:{port}/" in process.stdout.readline()

        def answers():
            try:
                return "pvn2-sureal" in httpx.get(f"http://127.0.0.1:{port}/cards/pvn2-sureal").text
            except httpx.TransportError:
                return False

        wait_until(answers)
    finally:
        process.terminate()
        assert process.wait(20) in (0, -15)
