"""Raters, their items and their ratings, with many of them at once."""

import json
import multiprocessing
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from itertools import pairwise

import pytest

from small_study import SYSTEMS, come_and_rate, practised_rater, small_study
from wordwing.errors import WordwingError
from wordwing.study.questions import Answers
from wordwing.study.store import (
    EnoughRatersError,
    FinishedError,
    Study,
    UnpractisedError,
)
from wordwing.web.participants import UnknownError


@pytest.fixture
def study(tmp_path):
    return small_study(tmp_path / "study.db")


def rated_items(study: Study) -> Counter:
    return Counter((entry.instruction, entry.system) for entry in study.ratings())


def test_raters_practise_first_and_then_rate_every_item_once(study):
    token = study.new_participant()
    first = study.next_item(token)
    assert (first.practice, first.place, first.of, first.instruction) == (True, 1, 1, "instruction 900")
    told = study.practise(token, first.id, Answers(5, 1, 3))
    assert [(entry.key, entry.fits) for entry in told] == [("path", True), ("goal", False), ("efficiency", None)]
    seen = []
    while (item := study.next_item(token)) is not None:
        assert (item.practice, item.place, item.of) == (False, len(seen) + 1, 9)
        assert item.answers is None
        seen.append(item)
        study.rate(token, item.id, Answers(1, 2, 3))
    assert len({item.id for item in seen}) == 9
    assert all(one.instruction != other.instruction for one, other in pairwise(seen))
    progress = study.progress(token)
    assert (progress.practised, progress.rated, progress.items, progress.finished) == (1, 9, 9, False)
    assert rated_items(study) == Counter({(f"i{i}", system): 1 for i in range(3) for system in SYSTEMS})


def test_what_is_kept_is_what_was_answered(study):
    token = practised_rater(study)
    order = study.order(token)
    study.rate(token, order[4][0], Answers(1, 2, 4, True, 7.5))
    [kept] = study.ratings()
    assert (kept.path, kept.goal, kept.efficiency, kept.unclear, kept.seconds) == (1, 2, 4, True, 7.5)
    assert kept.goal_ahead is True
    assert study.item(token, order[4][0]).answers == Answers(1, 2, 4, True, 7.5)
    assert [rated for _id, rated in study.order(token)] == [False] * 4 + [True] + [False] * 4


def test_nobody_rates_before_all_practice_is_done(tmp_path):
    study = small_study(tmp_path / "s.db", practice=2)
    token = study.new_participant()
    [first, *_others] = [item for item, _rated in study.order(token)]
    for left in (2, 1):
        with pytest.raises(UnpractisedError, match=f"{left} flights are to be practised on first"):
            study.rate(token, first, Answers(1, 1, 1))
        study.practise(token, study.next_item(token).id, Answers(3, 3, 3))
    assert study.ratings() == []
    study.rate(token, first, Answers(1, 1, 1))
    assert len(study.ratings()) == 1


def test_a_rating_can_be_changed_until_the_rater_has_finished(study):
    token = practised_rater(study)
    with pytest.raises(WordwingError, match="9 of 9 items have not been rated yet"):
        study.finish(token)
    for item, _rated in study.order(token):
        study.rate(token, item, Answers(1, 1, 1))
        study.rate(token, item, Answers(2, 3, 4))
    assert {(entry.path, entry.goal, entry.efficiency) for entry in study.ratings()} == {(2, 3, 4)}
    study.finish(token)
    study.finish(token)
    assert study.progress(token).finished
    with pytest.raises(FinishedError):
        study.rate(token, study.order(token)[0][0], Answers(5, 5, 5))
    assert {(entry.path, entry.goal, entry.efficiency) for entry in study.ratings()} == {(2, 3, 4)}


def test_a_rater_goes_on_where_they_were_with_nothing_but_their_token(study):
    token = study.new_participant()
    study.practise(token, study.next_item(token).id, Answers(3, 3, 3))
    for _ in range(4):
        study.rate(token, study.next_item(token).id, Answers(3, 3, 3))
    before = study.next_item(token), study.order(token), study.progress(token)
    again = Study(study.file)
    assert (again.next_item(token), again.order(token), again.progress(token)) == before
    assert before[0].place == 5


@pytest.mark.parametrize(("items_per_rater", "raters"), [(None, 2), (4, 3), (5, 2), (1, 1)])
def test_every_item_gets_as_many_judgements_as_it_needs_however_many_raters_come_at_once(
    tmp_path, items_per_rater, raters
):
    study = small_study(tmp_path / "s.db", instructions=4, raters=raters, items_per_rater=items_per_rater, practice=0)

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(come_and_rate, [study.file] * 40))
    expected = {(f"i{i}", system): raters for i in range(4) for system in SYSTEMS}
    assert rated_items(study) == Counter(expected)
    assert max(done) <= (items_per_rater or 12)
    assert sum(done) == 12 * raters
    assert study.raters() == (sum(map(bool, done)), sum(map(bool, done)))
    with pytest.raises(EnoughRatersError, match="needs no more raters"):
        study.new_participant()


def test_processes_share_a_study_and_leave_one_file(tmp_path):
    study = small_study(tmp_path / "study.db", instructions=3, raters=3, items_per_rater=3)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        done = pool.map(come_and_rate, [study.file] * 12, chunksize=1)
    assert sum(done) == 27
    assert set(rated_items(study).values()) == {3}
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]


def test_what_a_rater_left_is_given_to_others_after_a_day(tmp_path):
    now = [1_000_000.0]
    study = small_study(tmp_path / "s.db", instructions=1, raters=1, practice=0, clock=lambda: now[0])
    token = study.new_participant()
    kept = study.next_item(token).id
    study.rate(token, kept, Answers(5, 5, 5))
    now[0] += 23 * 3600
    with pytest.raises(EnoughRatersError):
        study.new_participant()
    now[0] += 2 * 3600
    other = study.new_participant()
    assert study.order(token) == [(kept, True)]
    assert kept not in [item for item, _rated in study.order(other)]
    assert (study.progress(token).items, study.progress(other).items) == (1, 2)
    assert study.item(token, kept).place == 1
    with pytest.raises(EnoughRatersError):
        study.new_participant()
    study.finish(token)


def test_nothing_tells_a_page_who_flew_or_what_an_object_is_called(study):
    token = study.new_participant()
    item = study.next_item(token)
    given = [item, study.progress(token), *study.practise(token, item.id, Answers(1, 1, 1))]
    given += [study.item(token, name) for name, _rated in study.order(token)]
    told = json.dumps([asdict(entry) for entry in given]).lower()
    for secret in (*SYSTEMS, "i0", "i1", "cage-0001", "landmark", "system", "gold"):
        assert secret not in told.replace("instruction", ""), secret


def test_ids_and_tokens_have_128_random_bits_and_tokens_are_not_in_the_file(tmp_path):
    one, other = small_study(tmp_path / "a.db"), small_study(tmp_path / "b.db")
    tokens = [study.new_participant() for study in (one, other) for _ in range(2)]
    items = [name for study, token in ((one, tokens[0]), (other, tokens[2])) for name, _ in study.order(token)]
    assert len(set(tokens)) == 4
    assert min(map(len, tokens)) == 22  # base64 of 16 bytes
    assert len(set(items)) == 18
    assert {len(bytes.fromhex(name)) for name in items} == {16}
    assert not any(token.encode() in one.file.read_bytes() for token in tokens)


STRANGE = ["", "x", "0" * 1000, "\ud800", "' OR 1=1 --", "%", "\0"]


@pytest.mark.parametrize("strange", STRANGE)
def test_unknown_tokens_and_items_are_refused(study, strange):
    token = study.new_participant()
    for use in (study.next_item, study.progress, study.order, study.finish):
        with pytest.raises(UnknownError):
            use(strange)
    for use in (
        lambda item: study.item(token, item),
        lambda item: study.media_of(item, "video"),
        lambda item: study.rate(token, item, Answers(1, 1, 1)),
        lambda item: study.practise(token, item, Answers(1, 1, 1)),
    ):
        with pytest.raises(UnknownError):
            use(strange)


def test_other_raters_items_are_as_unknown_as_items_that_do_not_exist(tmp_path):
    study = small_study(tmp_path / "s.db", raters=1, items_per_rater=4)
    mine, theirs = study.new_participant(), study.new_participant()
    [foreign, *_others] = {item for item, _ in study.order(theirs)} - {item for item, _ in study.order(mine)}
    with pytest.raises(UnknownError) as said:
        study.rate(mine, foreign, Answers(1, 1, 1))
    with pytest.raises(UnknownError) as said_of_nothing:
        study.rate(mine, "0" * 32, Answers(1, 1, 1))
    assert str(said.value) == str(said_of_nothing.value)
    with pytest.raises(UnknownError):
        study.item(mine, foreign)
    practice = study.next_item(mine).id
    with pytest.raises(UnknownError, match="only there to practise on"):
        study.rate(mine, practice, Answers(1, 1, 1))
    with pytest.raises(UnknownError, match="not there to practise on"):
        study.practise(mine, study.order(mine)[0][0], Answers(1, 1, 1))
    assert study.ratings() == []


def test_images_and_videos_are_those_of_the_item(study):
    token = study.new_participant()
    names = [study.next_item(token).id, *(name for name, _rated in study.order(token))]
    videos = [study.media_of(name, "video") for name in names]
    assert videos[0] == b"video oracle i900"
    assert sorted(videos[1:]) == sorted(f"video {system} i{i}".encode() for i in range(3) for system in SYSTEMS)
    for name, video in zip(names, videos, strict=True):
        instruction = video.split()[-1]
        assert study.media_of(name, "still") == b"still " + instruction
        assert study.media_of(name, "legend") == b"legend " + instruction
        assert study.item(token, name).instruction == "instruction " + instruction.decode()[1:]


def test_other_files_are_not_studies(tmp_path, study):
    (tmp_path / "text.db").write_text("hello " * 1000)
    (tmp_path / "empty.db").touch()
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE a (b)").connection.close()
    for name in ("text.db", "empty.db", "other.db"):
        with pytest.raises(WordwingError, match="this is not a study"):
            Study(tmp_path / name)
    with pytest.raises(WordwingError, match="there is no such file"):
        Study(tmp_path / "nowhere.db")
    assert not (tmp_path / "nowhere.db").exists()
    with pytest.raises(WordwingError, match="this is a folder"):
        Study(tmp_path)
    newer = sqlite3.connect(study.file)
    newer.execute("PRAGMA user_version = 2")
    newer.close()
    with pytest.raises(WordwingError, match="the study's schema is 2; this wordwing reads 1"):
        Study(study.file)


def test_a_study_that_may_not_be_written_can_be_read(study, monkeypatch):
    token = practised_rater(study)
    study.rate(token, study.order(token)[0][0], Answers(1, 1, 1))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert len(Study(study.file).ratings()) == 1
    with pytest.raises(WordwingError, match="cannot be used"):
        study.rate(token, study.order(token)[0][0], Answers(2, 2, 2))


def test_the_database_itself_refuses_scores_that_are_none(study):
    token = practised_rater(study)
    study.rate(token, study.order(token)[0][0], Answers(1, 1, 1))
    connection = sqlite3.connect(study.file)
    for column, value in (("path", 6), ("goal", 0), ("efficiency", "'x'"), ("unclear", 2), ("seconds", -1)):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"UPDATE ratings SET {column} = {value}")
    connection.close()
