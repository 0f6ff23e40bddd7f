"""People, their paths and their sentences: who is given what, what is kept, and what is accepted."""

import json
import sqlite3
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest

from small_collection import EXAMPLE, LENGTH, act, draw_to, ends, small_collection, write_all
from wordwing.collect.export import sentences_of, status_of
from wordwing.collect.store import Collection, UnsentError, parse_drawing, parse_sentence
from wordwing.errors import WordwingError
from wordwing.web.participants import RefusedRequestError, UnknownError


@pytest.fixture
def collection(tmp_path):
    return small_collection(tmp_path / "c.db")


def states(collection: Collection) -> dict[str, int]:
    return {state: count for state, count in status_of(collection).segments.items() if count}


def test_two_people_write_and_follow_each_others_sentences_until_all_are_accepted(tmp_path):
    collection = small_collection(tmp_path / "c.db", practice=1)
    people = [collection.new_participant() for _ in range(2)]
    done = [act(collection, people[turn % 2]) for turn in range(20)]
    assert done[:4] == ["write", "write", "follow", "follow"]  # practice
    assert Counter(filter(None, done[4:])) == {"write": 2, "follow": 4}
    assert states(collection) == {"accepted": 4}
    for token in people:
        found = collection.contribution(token)
        assert (found.practised, found.practice, found.written, found.accepted, found.followed) == (2, 2, 2, 2, 2)
    assert [(row["segment"], row["sentence"], row["distance"]) for row in sentences_of(collection)] == [
        (place, f"go past the barrel, part {place}", 0.0) for _path in range(2) for place in range(2)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_people_do_nobody_sees_a_path_twice_and_every_sentence_is_tried_by_somebody_else(tmp_path, rng, seed):
    now = [1e9]
    collection = small_collection(tmp_path / "c.db", paths=4, segments=3, tries=2, clock=lambda: now[0])
    people = [collection.new_participant() for _ in range(8)]
    quiet = 0
    while quiet < 3 * len(people):
        token = people[rng.integers(len(people))]
        now[0] += 60
        if rng.random() < 0.1:  # takes a task, and does not come back for two days
            collection.work(token)
            now[0] += 2 * 86_400
            continue
        quiet = 0 if act(collection, token, off=float(rng.choice([0.0, 0.4, 0.6, 2.0]))) else quiet + 1
    with sqlite3.connect(collection.file) as connection:
        seen = connection.execute("SELECT person, path, COUNT(*) FROM tasks GROUP BY 1, 2").fetchall()
    assert all(count == 1 for *_what, count in seen)
    tries = defaultdict(list)
    for row in sentences_of(collection):
        tries[row["path"], row["segment"]].append(row)
        assert row["follower"] != row["writer"]
        assert row["accepted"] in (None, row["distance"] < 0.47 if row["distance"] is not None else None)
    for rows in tries.values():
        assert [row["accepted"] for row in rows[:-1]] in ([], [False])
        assert len({row["writer"] for row in rows}) == len(rows) <= 2
    dropped = sum(len(rows) == 2 and rows[-1]["accepted"] is False for rows in tries.values())
    accepted = sum(rows[-1]["accepted"] is True for rows in tries.values())
    found = status_of(collection)
    assert (found.segments["dropped"], found.segments["accepted"]) == (dropped, accepted)
    assert found.agreeing == accepted


@pytest.mark.parametrize(("off", "accepted"), [(0.46, True), (-0.46, True), (0.48, False)])
def test_a_line_that_ends_within_47_cm_agrees(tmp_path, off, accepted):
    collection = small_collection(tmp_path / "c.db", paths=1, segments=1)
    one, other = collection.new_participant(), collection.new_participant()
    act(collection, one)
    act(collection, other, off)
    [row] = sentences_of(collection)
    assert (row["accepted"], row["distance"]) == (accepted, pytest.approx(abs(off)))
    assert states(collection) == {"accepted" if accepted else "open": 1}


def test_a_sentence_that_led_elsewhere_is_written_anew_by_somebody_else_and_dropped_after_the_last_try(tmp_path):
    collection = small_collection(tmp_path / "c.db", paths=1, tries=2)
    people = [collection.new_participant() for _ in range(5)]
    act(collection, people[0])
    draw_to(collection, people[1], collection.work(people[1]))
    draw_to(collection, people[1], collection.work(people[1]), off=1.0)
    assert states(collection) == {"accepted": 1, "open": 1}
    assert collection.work(people[0]) is collection.work(people[1]) is None  # both know the path
    work = collection.work(people[2])
    assert [(part.yours, part.sentence) for part in work.parts] == [(False, "go past the barrel, part 0"), (True, "")]
    write_all(collection, people[2], work, "rather go to the gorilla")
    assert collection.work(people[0]) is None
    work = collection.work(people[3])
    assert [part.sentence for part in work.parts] == ["go past the barrel, part 0", "rather go to the gorilla 1"]
    draw_to(collection, people[3], work, off=1.0)
    assert states(collection) == {"accepted": 1, "dropped": 1}
    assert collection.work(people[4]) is None
    assert [row["accepted"] for row in sentences_of(collection)] == [True, False, False]


def test_a_follower_is_given_one_part_after_another_and_nothing_of_what_comes_after(tmp_path):
    collection = small_collection(tmp_path / "c.db", paths=1, segments=3)
    writer, follower = collection.new_participant(), collection.new_participant()
    act(collection, writer)
    for place in range(3):
        work = collection.work(follower)
        assert (len(work.parts), work.of) == (place + 1, 3 - place)
        assert [part.yours for part in work.parts] == [False] * place + [True]
        assert all(part.poses == [] for part in work.parts)
        assert all(part.media == "" for part in work.parts[:-1])
        assert work.parts[-1].start == [-2.0 + LENGTH * place, -2.0, 0.0]
        for other in {0, 1, 2} - {place}:
            with pytest.raises(UnknownError):
                collection.follow(follower, work.id, other, (tuple(work.parts[-1].start[:2]), (0.0, 0.0)))
        draw_to(collection, follower, work)
    assert collection.work(follower) is None


def test_drafts_are_there_when_a_writer_comes_back_and_can_be_changed_until_they_are_sent(collection):
    token = collection.new_participant()
    work = collection.work(token)
    collection.keep(token, work.id, 1, "first")
    collection.keep(token, work.id, 1, "go to the sheet, second")
    with pytest.raises(UnsentError, match="part 1 is missing"):
        collection.send(token, work.id)
    again = Collection(collection.file).work(token)
    assert (again.id, [part.sentence for part in again.parts]) == (work.id, ["", "go to the sheet, second"])
    assert again.parts[1].remarks == ["The drone does not know this: sheet, picture, map or camera image."]
    assert status_of(collection).sentences == 0
    collection.keep(token, work.id, 0, "now the first")
    collection.send(token, work.id)
    assert [row["sentence"] for row in sentences_of(collection)] == ["now the first", "go to the sheet, second"]
    with pytest.raises(UnknownError):
        collection.keep(token, work.id, 0, "too late")


def test_what_somebody_left_for_a_day_is_given_to_others(tmp_path):
    now = [1e9]
    collection = small_collection(tmp_path / "c.db", paths=1, clock=lambda: now[0])
    one, other = collection.new_participant(), collection.new_participant()
    work = collection.work(one)
    collection.keep(one, work.id, 0, "half of it")
    now[0] += 23 * 3600
    assert collection.work(other) is None
    now[0] += 2 * 3600
    taken = collection.work(other)
    assert [part.sentence for part in taken.parts] == ["", ""]
    with pytest.raises(UnknownError):
        collection.keep(one, work.id, 1, "too late")
    assert collection.work(one) is None
    write_all(collection, other, taken)
    assert states(collection) == {"sent": 2}
    assert collection.work(one) is None  # who has seen the path can write, but not follow


def test_practice_is_told_about_and_counts_for_nothing(tmp_path):
    collection = small_collection(tmp_path / "c.db", practice=1)
    token = collection.new_participant()
    work = collection.work(token)
    assert (work.role, work.practice, work.parts[0].sentence) == ("write", True, "")
    collection.keep(token, work.id, 0, "turn around")
    told = collection.send(token, work.id)
    assert "thinks that the path does not do all" in told.text
    assert EXAMPLE in told.text
    work = collection.work(token)
    assert (work.role, work.practice, work.parts[0].sentence) == ("follow", True, EXAMPLE)
    x, y, _yaw = work.parts[0].start
    told = collection.follow(token, work.id, 0, ((x, y), (x + LENGTH - 0.5, y)))
    assert "0.50 m from where the drone was meant to stop, which is too far" in told.text
    assert told.path[-1] == pytest.approx((x + LENGTH, y))
    assert collection.work(token).practice is False
    found = status_of(collection)
    assert (found.sentences, found.readings, found.people) == (0, 0, ())
    assert collection.contribution(token).practised == 2


def test_many_people_at_once_share_the_work_and_nothing_is_done_twice(tmp_path):
    collection = small_collection(tmp_path / "c.db", paths=6, segments=2)

    def take_part(_number: int) -> int:
        own = Collection(collection.file)
        token = own.new_participant()
        return sum(1 for _turn in range(12) if act(own, token))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(take_part, range(6)))
    late = [collection.new_participant() for _ in range(3)]
    while sum(act(collection, token) is not None for token in late):  # what nobody else could do
        pass
    rows = list(sentences_of(collection))
    assert len({(row["path"], row["segment"]) for row in rows}) == len(rows) == 12
    assert states(collection) == {"accepted": 12}


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("  go   to the\n\tbarrel\x00  ", "go to the barrel"),
        ("<b>go</b> & stop; DROP TABLE sentences;--", "<b>go</b> & stop; DROP TABLE sentences;--"),
        ("flieg 🚁 zur Tonne 👩‍🚀", "flieg 🚁 zur Tonne 👩‍🚀"),
        ("cafe\u0301", "caf\u00e9"),
        ("go\ud800", "go?"),
    ],
)
def test_a_sentence_is_kept_as_it_was_typed_on_one_line(collection, typed, kept):
    assert parse_sentence({"sentence": typed}) == kept
    token = collection.new_participant()
    work = collection.work(token)
    collection.keep(token, work.id, 0, kept)
    assert collection.work(token).parts[0].sentence == kept


@pytest.mark.parametrize("sent", [{"sentence": ""}, {"sentence": " \n "}, {"sentence": "🚁🚁"}, {"sentence": "12. 3!"}])
def test_a_sentence_without_words_is_refused(sent):
    with pytest.raises(WordwingError, match="your sentence has no words; write what you would say to the drone"):
        parse_sentence(sent)


@pytest.mark.parametrize("sent", [{"sentence": "x" * 501}, {"sentence": 7}, {"sentence": None}, {}, [], "go", None])
def test_what_is_no_sentence_is_refused_in_one_sentence(sent):
    with pytest.raises(WordwingError, match=r"it must be|your sentence"):
        parse_sentence(sent)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ([], "a line of 2 to 400 points"),
        ([[0, 0]], "a line of 2 to 400 points"),
        ([[0, 0]] * 401, "a line of 2 to 400 points"),
        ([[0, 0], [0, 0, 0]], r"must be a point \[x, y\] in metres"),
        ([[0, 0], ["0", 0]], r"must be a point \[x, y\] in metres"),
        ([[0, 0], [float("nan"), 0]], r"must be a point \[x, y\] in metres"),
        ([[0, 0], [2.36, 0]], "leaves the field"),
        ("x", "a line of 2 to 400 points"),
        (None, "a line of 2 to 400 points"),
    ],
)
def test_what_is_no_line_is_refused_in_one_sentence(path, why):
    with pytest.raises(WordwingError, match=why):
        parse_drawing({"path": path})


def test_a_line_begins_at_the_drone(collection):
    one, other = collection.new_participant(), collection.new_participant()
    act(collection, one)
    collection.work(other)  # the other path
    third = collection.new_participant()
    act(collection, other)
    work = next(found for found in (collection.work(third), collection.work(one)) if found and found.role == "follow")
    token = third if collection.work(third).id == work.id else one
    x, y, _yaw = work.parts[-1].start
    with pytest.raises(RefusedRequestError, match="must begin at the drone"):
        collection.follow(token, work.id, work.parts[-1].place, ((x + 0.2, y), (x, y)))
    assert status_of(collection).readings == 0


STRANGE = ["", "x", "0" * 1000, "\ud800", "' OR 1=1 --", "%", "\0"]


@pytest.mark.parametrize("strange", STRANGE)
def test_unknown_tokens_and_tasks_are_refused(collection, strange):
    token = collection.new_participant()
    work = collection.work(token)
    for use in (collection.work, collection.contribution, lambda who: collection.send(who, work.id)):
        with pytest.raises(UnknownError):
            use(strange)
    for use in (
        lambda name: collection.keep(token, name, 0, "go"),
        lambda name: collection.send(token, name),
        lambda name: collection.follow(token, name, 0, ((0, 0), (1, 1))),
        lambda name: collection.media_of(name, "map"),
        lambda name: collection.media_of(work.map, name),
    ):
        with pytest.raises(UnknownError):
            use(strange)
    for place in (-1, 2, 10**9):
        with pytest.raises(UnknownError):
            collection.keep(token, work.id, place, "go")


def test_nobody_does_anothers_task_or_one_in_the_other_role(collection):
    one, other = collection.new_participant(), collection.new_participant()
    work = collection.work(one)
    with pytest.raises(UnknownError):
        collection.keep(other, work.id, 0, "go")
    with pytest.raises(UnknownError):
        collection.follow(one, work.id, 0, ((-2.0, -2.0), (0.0, 0.0)))
    assert states(collection) == {"open": 4}


def test_tokens_are_not_in_the_file_and_ids_have_128_random_bits(tmp_path):
    collection = small_collection(tmp_path / "c.db")
    tokens = [collection.new_participant() for _ in range(2)]
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(token.encode() in content for token in tokens)
    assert min(map(len, tokens)) == 22
    assert {len(bytes.fromhex(name)) for name in ends(collection.file)} == {16}


def test_other_files_are_not_collections(tmp_path, collection):
    (tmp_path / "text.db").write_text("hello " * 1000)
    with pytest.raises(WordwingError, match="this is not a collection; wordwing collect create makes one"):
        Collection(tmp_path / "text.db")
    with pytest.raises(WordwingError, match="there is no such file; wordwing collect create makes a collection"):
        Collection(tmp_path / "none.db")
    with sqlite3.connect(collection.file) as connection:
        connection.execute("UPDATE settings SET value = ? WHERE key = 'tries'", (json.dumps("many"),))
    with pytest.raises(WordwingError, match=r'the collection\'s settings: "tries" is "many"'):
        Collection(collection.file)
