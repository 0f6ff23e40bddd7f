"""What SECURITY.md says was seen, is seen."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")

WATCHED = """
import json, sys
seen = []
def watch(event, values):
    sockets = ("connect", "bind", "sendto", "getaddrinfo")
    if event in ("urllib.Request", "pickle.find_class", *(f"socket.{name}" for name in sockets)):
        seen.append(event)
sys.addaudithook(watch)
from wordwing.cli import main
out = sys.argv[1]
main(["fly", "go to the barrel", "--policy", "oracle", "--out", f"{out}/fly"])
main(["evaluate", "pvn2-sureal", "--limit", "1", "--device", "cpu", "--out", f"{out}/evaluation"])
main(["report", f"{out}/evaluation", "--videos", "0", "--out", f"{out}/report"])
print(json.dumps(seen))
"""


def test_commands_open_no_socket_and_load_no_pickle(tmp_path):
    """Python itself tells of each, whoever does it."""
    done = subprocess.run([sys.executable, "-c", WATCHED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
    assert (tmp_path / "fly" / "flight.mp4").stat().st_size > 10_000


def test_nothing_in_the_package_can_load_pickles_or_download():
    banned = {
        "pickle",
        "cPickle",
        "dill",
        "shelve",
        "marshal",
        "urllib.request",
        "http.client",
        "requests",
        "httpx",
        "ftplib",
    }
    loads = []
    for file in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & banned, file
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("torch.load", "np.load"):
                loads.append(f"{file.name}: {ast.unparse(node)}")
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.load":
                assert any(ast.unparse(given) == "allow_pickle=False" for given in node.keywords), file
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert ast.unparse(node.value) == "False", file
    assert loads == ["word_vectors.py: np.load"], "a file of ours, which no user gives"


def test_every_test_that_the_page_names_is_there():
    [table] = re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)
    named = [name for row in table.splitlines()[2:] for name in re.findall(r"`(test_\w+|tests/[\w/]+\.py)`", row)]
    assert len(table.splitlines()) - 2 <= len(named)
    tests = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    for name in named:
        assert (ROOT / name).is_file() if name.endswith(".py") else f"def {name}(" in tests, name
