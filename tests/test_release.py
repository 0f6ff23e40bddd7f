import subprocess

import pytest

import wordwing
from wordwing import release


def git(folder, *arguments):
    names = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *names, "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with a package in it, as a checkout of wordwing has."""
    package = tmp_path / "src" / "wordwing"
    package.mkdir(parents=True)
    (package / release.ARCHIVED).write_text("$Format:%H$\n")
    (tmp_path / ".gitattributes").write_text(f"src/wordwing/{release.ARCHIVED} export-subst\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    monkeypatch.setattr(release, "files", lambda name: package)
    return tmp_path


def test_a_checkout_knows_its_commit_and_whether_it_has_changed(checkout):
    head = git(checkout, "rev-parse", "HEAD")
    assert release.commit() == head[:12]
    assert release.release() == f"{wordwing.__version__} (commit {head[:12]})"
    (checkout / ".gitattributes").write_text("")
    assert release.commit() == f"{head[:12]}+"


def test_an_archive_knows_the_commit_it_was_made_from(checkout, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("archive")
    git(checkout, "archive", "HEAD", "--format=tar", "-o", str(elsewhere / "all.tar"))
    subprocess.run(["tar", "xf", "all.tar"], cwd=elsewhere, check=True)
    monkeypatch.setattr(release, "files", lambda name: elsewhere / "src" / "wordwing")
    assert release.commit() == git(checkout, "rev-parse", "HEAD")[:12]


def test_a_wordwing_that_lies_in_somebody_elses_checkout_does_not_take_their_commit(checkout, monkeypatch):
    package = checkout / "venv" / "wordwing"
    package.mkdir(parents=True)
    (package / release.ARCHIVED).write_text("$Format:%H$\n")
    monkeypatch.setattr(release, "files", lambda name: package)
    assert release.commit() == ""
    assert release.release() == wordwing.__version__


def test_without_git_the_commit_is_not_known(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert release.commit() == ""
