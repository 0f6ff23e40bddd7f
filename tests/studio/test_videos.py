import asyncio
import json
import os
import time

import av
import numpy as np
import pytest

from studio_server import LAYOUT, START, RunningStudio
from wordwing.language.text_checks import unknown_words
from wordwing.studio.live import LiveFlight
from wordwing.studio.messages import read_link
from wordwing.studio.videos import QUEUE, QueueFullError, VideoQueue, video_frames

LINK = {
    "layout": LAYOUT,
    "start": START,
    "seed": 2,
    "vehicle": "sim",
    "policies": ["small0"],
    "texts": ["go to the barrel", "left of the barrel"],
}


def frames_of(path):
    with av.open(str(path)) as video:
        return [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]


def fetched(http, address, seconds=300):
    end, shares = time.monotonic() + seconds, [0.0]
    while (answer := http.get(address)).status_code == 202:
        shares.append(answer.json()["share"])
        assert time.monotonic() < end
        time.sleep(0.2)
    assert shares == sorted(shares)
    return answer


def test_a_video_shows_every_state_of_every_instruction(policies, monkeypatch):
    shown = []

    def frames(flight, overhead, title, marked, threshold):
        shown.append((flight, title, unknown_words(marked)))
        yield from flight.positions

    monkeypatch.setattr("wordwing.studio.videos.belief_frames", frames)
    link = read_link(json.dumps({**LINK, "policies": ["small0", "other"], "texts": ["go blorb", "left"]}), policies)
    shares: list[float] = []
    drawn = list(video_frames(link, policies, 4, shares.append))
    assert [title for _flight, title, _unknown in shown] == ["small0 in sim"] * 2 + ["other in sim"] * 2
    assert [unknown for _flight, _title, unknown in shown] == [["blorb"], []] * 2
    expected = []
    for name in ("small0", "other"):
        live = LiveFlight(link.start, max_steps=4)
        for text in ("go blorb", "left"):
            live.begin(text, policies[name].instance("sim"))
            while live.flying:
                live.advance()
            expected += list(live.executions[-1].positions)
    assert np.array_equal(np.stack(drawn), np.stack(expected))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_a_shared_link_is_rendered_as_a_video_and_fetched(policies, tmp_path):
    with RunningStudio(policies, tmp_path, steps=1) as studio, studio.http(headers={"origin": studio.url}) as http:
        asked = http.post("/video", content=json.dumps({**LINK, "texts": ["go to the barrel"]}))
        assert asked.status_code == 202
        answer = fetched(http, f"/video/{asked.json()['job']}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "video/mp4")
        (tmp_path / "video.mp4").write_bytes(answer.content)
        assert http.get("/video/nothing").status_code == 404
        frames = frames_of(tmp_path / "video.mp4")
        assert frames[0].shape == (900, 1600, 3)
        assert len(frames) >= 8  # a decision, seven states, and the last one is held
        assert http.post("/video", content="{}").status_code == 400
        assert http.post("/video", content=json.dumps({**LINK, "policies": ["nobody"]})).status_code == 400
    assert [path.name for path in tmp_path.iterdir()] == ["video.mp4"]  # what nobody asked to keep is gone


def test_a_kept_episode_can_be_fetched_as_a_video(policies, tmp_path):
    with RunningStudio(policies, tmp_path, steps=1) as studio, studio.http() as http:
        with studio.page() as page:
            page.place()
            page.say("speed", value=8)
            page.fly()
            page.until("state", phase="ended")
            page.say("keep")
            name = page.until("kept")["id"]
        assert fetched(http, f"/episodes/{name}.mp4").status_code == 200
        assert http.get(f"/episodes/{name[::-1]}.mp4").status_code == 404
    assert (tmp_path / f"{name}.mp4").is_file()


def test_videos_that_a_killed_server_left_are_deleted_after_a_day(policies, tmp_path):
    for name, age in ((".videos-old", 90_000), (".videos-young", 60)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.mp4").write_bytes(b"video")
        os.utime(tmp_path / name, (time.time() - age,) * 2)

    async def open_and_close():
        await VideoQueue(policies, tmp_path).close()

    asyncio.run(open_and_close())
    assert [path.name for path in tmp_path.iterdir()] == [".videos-young"]


def test_the_queue_is_short(policies, tmp_path, monkeypatch):
    async def never(self, job):
        await asyncio.sleep(60)

    async def ask():
        videos = VideoQueue(policies, tmp_path)
        link = read_link(json.dumps(LINK), policies)
        names = [videos.add(link) for _video in range(QUEUE)]
        assert len(set(names)) == QUEUE
        with pytest.raises(QueueFullError):
            videos.add(link)
        await asyncio.sleep(0)
        await videos.close()

    monkeypatch.setattr(VideoQueue, "_render", never)
    asyncio.run(ask())
    assert list(tmp_path.iterdir()) == []


def test_a_video_that_fails_is_said_to_have_failed(policies, tmp_path, monkeypatch):
    async def ask():
        videos = VideoQueue(policies, tmp_path)
        link = read_link(json.dumps(LINK), policies)
        monkeypatch.setattr("sys.executable", "/bin/false")
        name = videos.add(link)
        while videos.job(name).state == "waiting":
            await asyncio.sleep(0.01)
        assert videos.job(name).state == "failed"
        await videos.close()

    asyncio.run(ask())
