import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from wordwing.errors import WordwingError
from wordwing.studio import episodes as module
from wordwing.studio.episodes import Episodes, data_folder

NAME = "A" * 22


def test_names_cannot_be_guessed_and_files_are_whole(tmp_path):
    episodes = Episodes(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        names = list(pool.map(lambda number: episodes.keep({"number": number}), range(40)))
    assert len(set(names)) == 40
    assert all(len(name) == 22 for name in names)
    found = [json.loads(episodes.path(name).read_text())["number"] for name in names]
    assert found == list(range(40))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{name}.json" for name in names)


def test_episodes_are_deleted_after_their_time_and_nothing_else_is(tmp_path):
    now = [1e9]
    episodes = Episodes(tmp_path, days=30, clock=lambda: now[0])
    old = episodes.keep({})
    now[0] += 20 * 86_400
    young = episodes.keep({})
    foreign = tmp_path / "thesis.json"
    half = tmp_path / f".{NAME}-abc.json"
    for path in (foreign, half):
        path.write_text("{}")
        os.utime(path, (0, 0))
    now[0] += 11 * 86_400
    assert episodes.path(old) is None  # even before it is deleted
    assert episodes.clean() == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"{young}.json", "thesis.json"])
    now[0] += 20 * 86_400
    Episodes(tmp_path, clock=lambda: now[0])
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.json"]


def test_a_video_goes_with_its_episode(tmp_path):
    now = [1e9]
    episodes = Episodes(tmp_path, clock=lambda: now[0])
    name = episodes.keep({})
    video = episodes.video_path(name)
    video.write_bytes(b"video")
    assert episodes.path(name, "mp4") == video
    now[0] += 31 * 86_400
    assert episodes.path(name, "mp4") is None
    assert episodes.clean() == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["", "..", "../" + NAME, NAME + "\n", NAME + "/x", NAME[:-1], NAME + "A", "é" * 22, "%2e%2e%2f" + NAME[:13]]
)
def test_no_other_file_can_be_asked_for(tmp_path, name):
    folder = tmp_path / "kept"
    episodes = Episodes(folder)
    (tmp_path / f"{NAME}.json").write_text("secret")
    (folder / f"{NAME}.txt").write_text("secret")
    assert episodes.path(name) is None
    assert episodes.path(NAME, "txt") is None
    assert episodes.path(NAME, "../json") is None
    with pytest.raises(ValueError, match="no episode"):
        episodes.video_path(name)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    folder = tmp_path / "kept"
    episodes = Episodes(folder)
    (tmp_path / "secret").write_text("secret")
    (folder / f"{NAME}.json").symlink_to(tmp_path / "secret")
    assert episodes.path(NAME) is None


def test_only_so_many_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_EPISODES", 2)
    episodes = Episodes(tmp_path)
    episodes.keep({})
    episodes.keep({})
    with pytest.raises(WordwingError, match="as many episodes as it can"):
        episodes.keep({})
    monkeypatch.setattr(module, "MAX_EPISODES", 9)
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(WordwingError, match="as many episodes as it can"):
        episodes.keep({"long": "x" * 100})
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_was_deleted_is_made_again(tmp_path):
    folder = tmp_path / "kept"
    episodes = Episodes(folder)
    folder.rmdir()
    assert episodes.clean() == 0
    assert episodes.path(episodes.keep({"number": 1})).read_text() == '{"number":1}'


def test_an_episode_that_cannot_be_written_is_refused_without_telling_where_the_folder_is(tmp_path):
    folder = tmp_path / "kept"
    episodes = Episodes(folder)
    folder.rmdir()
    folder.write_text("a file")
    with pytest.raises(WordwingError) as refused:
        episodes.keep({})
    assert "download it instead" in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WordwingError, match="cannot be kept there"):
        Episodes(tmp_path / "file" / "kept")


def test_a_folder_that_cannot_be_read_is_named(monkeypatch, tmp_path):
    def refuse(_folder):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(WordwingError, match="episodes cannot be kept there"):
        Episodes(tmp_path)


def test_a_folder_that_cannot_be_written_is_refused_when_it_is_opened(monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path or not mode & os.W_OK)
    with pytest.raises(WordwingError, match=r"must be writable, or episodes could not be kept$"):
        Episodes(tmp_path)


def test_the_folder_is_in_the_users_data(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "wordwing" / "studio"
