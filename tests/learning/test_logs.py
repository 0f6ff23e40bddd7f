import json
import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from wordwing.errors import WordwingError
from wordwing.learning.runtime import logs as metric_log
from wordwing.learning.runtime.logs import MetricLog, read_scalars


def board(folder):
    """What TensorBoard itself reads."""
    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def curve(folder, name):
    return [(event.step, event.value) for event in board(folder).Scalars(name)]


def lines(folder):
    return [json.loads(line) for line in (folder / "scalars.jsonl").read_text().splitlines()]


def test_scalars_are_found_by_tensorboard_and_as_lines(tmp_path):
    log = MetricLog(tmp_path / "run" / "a")
    log.scalars({"losses/value_loss": 0.5, "charts/SPS": 1200, "losses/entropy": torch.tensor([0.25])}, 0)
    log.scalars({"losses/value_loss": torch.tensor(0.75, requires_grad=True)}, 10)
    folder = tmp_path / "run" / "a"
    assert curve(folder, "losses/value_loss") == [(0, 0.5), (10, 0.75)], "before it is closed"
    log.close()
    assert curve(folder, "charts/SPS") == [(0, 1200.0)]
    assert curve(folder, "losses/entropy") == [(0, 0.25)]
    first, second = lines(folder)
    assert first.pop("time") == pytest.approx(second.pop("time"), abs=60)
    assert first == {"step": 0, "losses/value_loss": 0.5, "charts/SPS": 1200, "losses/entropy": 0.25}
    assert second == {"step": 10, "losses/value_loss": 0.75}
    assert [row["step"] for row in read_scalars(folder)] == [0, 10]


def test_tensors_are_fetched_together(tmp_path, monkeypatch):
    fetched = []
    tolist = torch.Tensor.tolist
    monkeypatch.setattr(torch.Tensor, "tolist", lambda tensor: fetched.append(tensor) or tolist(tensor))
    monkeypatch.setattr(torch.Tensor, "item", None)
    monkeypatch.setattr(torch.Tensor, "__float__", None)
    log = MetricLog(tmp_path)
    values = {"a": torch.tensor(1), "b": 2.0, "c": torch.tensor(3.5, dtype=torch.float16), "d": torch.tensor(True)}
    log.scalars(values, 1)
    assert len(fetched) == 1
    [row] = lines(tmp_path)
    assert [row[name] for name in "abcd"] == [1.0, 2.0, 3.5, 1.0]


def test_what_is_no_number_is_null_in_lines(tmp_path):
    log = MetricLog(tmp_path)
    log.scalars({"a": float("nan"), "b": torch.tensor(float("inf")), "c": -math.inf, "d": 1.0}, 1)
    text = (tmp_path / "scalars.jsonl").read_text()
    [row] = lines(tmp_path)
    assert [row[name] for name in "abcd"] == [None, None, None, 1.0]
    assert "NaN" not in text
    assert "Infinity" not in text
    assert math.isnan(curve(tmp_path, "a")[0][1])
    assert curve(tmp_path, "b") == [(1, math.inf)]


def test_numbers_beyond_single_precision_are_logged(tmp_path):
    log = MetricLog(tmp_path)
    log.scalars({"a": 1e300}, 1)
    assert lines(tmp_path)[0]["a"] == 1e300
    assert curve(tmp_path, "a") == [(1, math.inf)]


def test_a_resumed_log_forgets_what_came_after_its_checkpoint(tmp_path):
    log = MetricLog(tmp_path)
    for step in (0, 5, 10, 15):
        log.scalars({"loss": float(step)}, step)
    log = MetricLog(tmp_path, start_step=5)  # the process before was killed: it has not closed its own
    assert [row["step"] for row in lines(tmp_path)] == [0, 5]
    assert curve(tmp_path, "loss") == [(0, 0.0), (5, 5.0)]
    for step in (7, 12):
        log.scalars({"loss": -float(step)}, step)
    log.close()
    log = MetricLog(tmp_path, start_step=7)
    log.scalars({"loss": 0.5}, 8)
    log.close()
    expected = [(0, 0.0), (5, 5.0), (7, -7.0), (8, 0.5)]
    assert curve(tmp_path, "loss") == expected
    assert [(row["step"], row["loss"]) for row in lines(tmp_path)] == expected
    MetricLog(tmp_path).close()
    assert lines(tmp_path) == []
    assert "loss" not in board(tmp_path).Tags()["scalars"] or curve(tmp_path, "loss") == []


def test_half_a_line_of_a_killed_process_is_cut_off(tmp_path):
    log = MetricLog(tmp_path)
    log.scalars({"loss": 1.0}, 1)
    log.close()
    with open(tmp_path / "scalars.jsonl", "a") as file:
        file.write('{"step": 2, "lo')
    assert [row["step"] for row in read_scalars(tmp_path)] == [1]
    log = MetricLog(tmp_path, start_step=5)
    log.scalars({"loss": 6.0}, 6)
    assert [(row["step"], row["loss"]) for row in lines(tmp_path)] == [(1, 1.0), (6, 6.0)]


def test_half_an_event_of_a_killed_process_hides_nothing_that_follows(tmp_path):
    log = MetricLog(tmp_path)
    log.scalars({"loss": 1.0}, 1)
    log.scalars({"loss": 2.0}, 2)
    log.close()
    [events] = tmp_path.glob("events*")
    os.truncate(events, events.stat().st_size - 7)
    log = MetricLog(tmp_path, start_step=1)
    log.scalars({"loss": 3.0}, 2)
    assert curve(tmp_path, "loss") == [(1, 1.0), (2, 3.0)]


def test_images_are_found_by_tensorboard(tmp_path, rng):
    log = MetricLog(tmp_path, start_step=6)
    image = rng.integers(0, 256, (9, 14, 3), dtype=np.uint8)
    log.image("beliefs/dev", image, 7)
    log.close()
    found = board(tmp_path)
    [logged] = found.Images("beliefs/dev")
    assert logged.step == 7
    (tmp_path / "image.png").write_bytes(logged.encoded_image_string)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "image.png")), image)


@pytest.mark.parametrize("image", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((4, 4, 4), np.uint8)])
def test_what_is_no_image_is_refused(tmp_path, image):
    with pytest.raises(ValueError, match="an image is"):
        MetricLog(tmp_path).image("a", image, 0)


def test_there_is_no_thread(tmp_path):
    before = threading.active_count()
    MetricLog(tmp_path).scalars({"a": 1.0}, 1)
    assert threading.active_count() == before


def fill_up(monkeypatch, part):
    """Every file with `part` in its name is on a disk that is full from now on."""

    def open_on_full_disk(path, mode):
        return open("/dev/full" if part in path.name else path, mode)

    monkeypatch.setattr(metric_log, "open", open_on_full_disk, raising=False)


@pytest.mark.parametrize("part", ["scalars", "events"])
def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch, part):
    fill_up(monkeypatch, part)

    def write():
        log = MetricLog(tmp_path)
        try:
            log.scalars({"loss": 1.0}, 1)
        finally:
            log.close()

    with pytest.raises(
        WordwingError, match=rf"{part}.*: the disk is full; make room and run the same command"
    ) as found:
        write()
    assert "\n" not in str(found.value)


FULL = """
import sys
from wordwing.errors import WordwingError
from wordwing.learning.runtime import logs as metric_log
log = metric_log.MetricLog(sys.argv[1])
log.scalars({"loss": 1.0}, 1)
for name in ("_lines", "_events"):
    getattr(log, name).close()
    setattr(log, name, open("/dev/full", "wb"))
try:
    log.image("a", __import__("numpy").zeros((64, 64, 3), "uint8"), 2)
except WordwingError as error:
    sys.exit(f"wordwing: {error}")
"""


def test_a_full_disk_leaves_no_traceback_on_the_screen(tmp_path):
    done = subprocess.run([sys.executable, "-W", "error", "-c", FULL, tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("wordwing: ")
    assert done.stderr.count("\n") == 1
    assert "the disk is full" in done.stderr


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WordwingError, match="not a directory"):
        MetricLog(tmp_path / "file" / "a")
    with pytest.raises(WordwingError, match="there is no such file"):
        read_scalars(tmp_path / "none")
