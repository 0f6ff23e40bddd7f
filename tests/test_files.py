"""Files that are replaced: what is on the disk, in which order."""

import os
from pathlib import Path

import pytest

from small_evaluation import save_policy
from wordwing.files import replacing, replacing_folder
from wordwing.learning.runtime.messages import Heartbeat


@pytest.fixture
def synced(monkeypatch) -> list[str]:
    """What is done for good, in order: "sync NAME" and "replace NAME"; all of it is really done."""
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def noted_sync(handle: int) -> None:
        done.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}")
        sync(handle)

    def noted_replace(source, target) -> None:
        done.append(f"replace {Path(target).name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_replace)
    return done


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_thereafter(tmp_path, synced):
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("a")
    assert synced == [f"sync {temporary.name}", "replace a.txt", f"sync {tmp_path.name}"]


def test_all_of_a_folder_is_on_the_disk_before_it_has_its_name(tmp_path, synced):
    for _time in ("new", "replaced"):
        synced.clear()
        with replacing_folder(tmp_path / "a") as temporary:
            (temporary / "inside").mkdir()
            (temporary / "b").write_text("b")
            (temporary / "inside" / "c").write_text("c")
        *before, last = [entry for entry in synced if entry != "replace a"]  # two folders may be exchanged at once
        assert last == f"sync {tmp_path.name}"
        assert before == ["sync b", f"sync {temporary.name}", "sync c", "sync inside"]


def test_a_policy_is_on_the_disk_before_it_takes_the_place_of_another(tmp_path, synced):
    save_policy(tmp_path / "best")
    synced.clear()
    save_policy(tmp_path / "best")
    files = ("config.json", "model.safetensors", "vocab.txt", "README.md")
    assert {f"sync {name}" for name in files} <= set(synced)
    assert synced[-1] == f"sync {tmp_path.name}"


def test_what_is_written_every_second_does_not_wait_for_the_disk(tmp_path, synced):
    Heartbeat(tmp_path, "a").beat({"phase": "learning"}, force=True)
    assert synced == ["replace a.json"]
