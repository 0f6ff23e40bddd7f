"""Batches for Mechanical Turk and their results."""

import csv
import io
import re

import pytest

from small_study import rate_everything, small_study
from wordwing.errors import WordwingError
from wordwing.study.mturk import COLUMNS, export_batch, hashed, import_batch, markup, media_folder, template
from wordwing.study.questions import GUIDELINES, Answers

# The columns of a "Download CSV" of the requester's site, which leaves the fields of the last two out of rows.
BEFORE = (
    "HITId", "HITTypeId", "Title", "Description", "Keywords", "Reward", "CreationTime", "MaxAssignments",
    "RequesterAnnotation", "AssignmentDurationInSeconds", "AutoApprovalDelayInSeconds", "Expiration",
    "NumberOfSimilarHITs", "LifetimeInSeconds", "AssignmentId", "WorkerId", "AssignmentStatus", "AcceptTime",
    "SubmitTime", "AutoApprovalTime", "ApprovalTime", "RejectionTime", "RequesterFeedback", "WorkTimeInSeconds",
    "LifetimeApprovalRate", "Last30DaysApprovalRate", "Last7DaysApprovalRate",
)  # fmt: skip


@pytest.fixture
def study(tmp_path):
    return small_study(tmp_path / "s.db", instructions=2, systems=("average", "oracle"), raters=2, practice=1)


@pytest.fixture
def batch(study, tmp_path):
    export_batch(study, tmp_path / "batch.csv", "https://example.org/videos")
    with (tmp_path / "batch.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def results(batch, workers=("A1SECRET", "A2SECRET"), answers=None, change=None, review=False) -> str:
    """What MTurk would give back: each worker does all items, path 2 and goal 4."""
    answers = answers or {"path": "2", "goal": "4", "efficiency": "5", "unclear": ""}
    columns = [*BEFORE, *(f"Input.{name}" for name in COLUMNS), *(f"Answer.{name}" for name in answers)]
    rows = []
    for worker in workers:
        for row in batch:
            fields = dict.fromkeys(columns, "x") | {"WorkerId": worker, "WorkTimeInSeconds": "31"}
            fields |= {"HITId": "HIT-SECRET", "AssignmentId": "ASSIGNMENT-SECRET", "AssignmentStatus": "Submitted"}
            fields |= {f"Input.{name}": value for name, value in row.items()}
            fields |= {f"Answer.{name}": value for name, value in answers.items()}
            rows.append(fields)
    for name, value in (change or {}).items():
        rows[2][name] = value
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow([*columns, "Approve", "Reject"])
    for fields in rows:
        writer.writerow([*fields.values(), *(["x", "because"] if review else [])])
    return out.getvalue()


def test_a_batch_has_a_row_for_each_item_and_images_beside_it(study, batch, tmp_path):
    assert len(batch) == 4
    assert tuple(batch[0]) == COLUMNS
    token = study.new_participant()
    assert {row["item"] for row in batch} == {item for item, _rated in study.order(token)}
    folder = media_folder(tmp_path / "batch.csv")
    for row in batch:
        assert row["instruction"] == study.item(token, row["item"]).instruction
        for kind in ("video", "still", "legend"):
            assert row[kind].startswith("https://example.org/videos/")
            content = (folder / row[kind].rsplit("/", 1)[1]).read_bytes()
            assert content == study.media_of(row["item"], kind)
    assert len(list(folder.iterdir())) == 12
    told = (tmp_path / "batch.csv").read_text() + " ".join(path.name for path in folder.iterdir())
    assert "oracle" not in told
    assert "average" not in told
    assert export_batch(study, tmp_path / "batch.csv", "https://example.org/other/") == 4
    assert "https://example.org/other/" in (tmp_path / "batch.csv").read_text()


def test_the_template_asks_the_papers_questions_and_uses_every_column_but_the_id(tmp_path, batch):
    text = (tmp_path / "batch.html").read_text()
    assert text == template()
    assert set(re.findall(r"\$\{(\w+)\}", text)) == set(COLUMNS) - {"item"}
    assert set(re.findall(r'name="(\w+)"', text)) == {"path", "goal", "efficiency", "unclear"}
    assert len(re.findall(r'type="radio"', text)) == 15
    for guideline in GUIDELINES:
        assert markup(guideline) in text
    assert "http" not in text  # nothing from elsewhere


def test_results_come_back_as_ratings(study, batch, tmp_path):
    (tmp_path / "r.csv").write_text(results(batch))
    assert import_batch(study, tmp_path / "r.csv") == (8, 2, 0)
    found = study.ratings()
    assert len(found) == 8
    assert {(entry.path, entry.goal, entry.efficiency, entry.unclear, entry.seconds) for entry in found} == {
        (2, 4, 5, False, 31.0)
    }
    assert len({(entry.rater, entry.instruction, entry.system) for entry in found}) == 8
    with pytest.raises(WordwingError, match="needs no more raters"):
        study.new_participant()  # they count
    with pytest.raises(WordwingError, match=r"r\.csv: line 2: this worker has rated this item already"):
        import_batch(study, tmp_path / "r.csv")
    assert len(study.ratings()) == 8


def test_pages_and_batches_are_one_study(study, batch, tmp_path):
    (tmp_path / "r.csv").write_text(results(batch, workers=["A1"]))
    import_batch(study, tmp_path / "r.csv")
    rate_everything(study, lambda item: Answers(1, 1, 1, True))
    assert sorted(entry.path for entry in study.ratings()) == [1] * 4 + [2] * 4
    assert study.raters() == (2, 2)


def test_of_workers_nothing_but_a_salted_hash_is_kept(study, batch, tmp_path):
    (tmp_path / "r.csv").write_text(results(batch))
    import_batch(study, tmp_path / "r.csv")
    kept = study.file.read_bytes()
    assert b"SECRET" not in kept
    assert hashed("A1SECRET", bytes(32)) in kept
    assert hashed("A1SECRET", bytes(32)) != hashed("A1SECRET", b"1" * 32)
    assert hashed("A1SECRET", bytes(32)) != hashed("A2SECRET", bytes(32))


def test_what_a_requester_entered_for_review_does_not_matter_but_rejected_work_is_left_out(study, batch, tmp_path):
    (tmp_path / "r.csv").write_text(results(batch, change={"AssignmentStatus": "Rejected"}, review=True))
    assert import_batch(study, tmp_path / "r.csv") == (7, 2, 1)


def test_crowd_forms_give_a_column_for_each_choice(study, batch, tmp_path):
    answers = {
        f"{key}.{score}": str(score == 3).lower() for key in ("path", "goal", "efficiency") for score in range(1, 6)
    }
    (tmp_path / "r.csv").write_text(results(batch, answers=answers | {"unclear.1": "true"}))
    import_batch(study, tmp_path / "r.csv")
    assert {(entry.path, entry.goal, entry.efficiency, entry.unclear) for entry in study.ratings()} == {(3, 3, 3, True)}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"Answer.path": "6"}, "Answer.path"),
        ({"Answer.goal": ""}, "Answer.goal"),
        ({"Answer.goal": "2.5"}, "Answer.goal"),
        ({"Answer.goal": "٣"}, "Answer.goal"),
        ({"Answer.efficiency": "12"}, "Answer.efficiency"),
        ({"Answer.unclear": "maybe"}, "Answer.unclear"),
        ({"WorkTimeInSeconds": "-4"}, "WorkTimeInSeconds"),
        ({"WorkTimeInSeconds": "nan"}, "WorkTimeInSeconds"),
        ({"WorkTimeInSeconds": "soon"}, "WorkTimeInSeconds"),
        ({"WorkerId": ""}, "WorkerId"),
        ({"WorkerId": "A1'; DROP TABLE raters"}, "WorkerId"),
        ({"Input.item": "0" * 32}, "this study has no item"),
    ],
)
def test_a_malformed_row_is_named_and_nothing_is_imported(study, batch, tmp_path, change, reason):
    (tmp_path / "r.csv").write_text(results(batch, change=change), "utf-8")
    with pytest.raises(WordwingError, match=rf"r\.csv: line 4: .*{reason}"):
        import_batch(study, tmp_path / "r.csv")
    assert study.ratings() == []
    assert study.raters() == (0, 0)


def test_files_that_are_no_results_are_refused(study, batch, tmp_path):
    good = results(batch)
    head, *rows = good.splitlines(keepends=True)
    practice = study.next_item(study.new_participant()).id
    for content, sentence in (
        (b"", "line 1 has no column WorkerId"),
        (head.encode(), "there is no judgement in it"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        ((head + "a,b\n").encode(), "line 2 has 2 fields"),
        ((head + rows[0] + '"open').encode(), "line 3 is not CSV"),
        ((head + rows[0].replace("\r\n", '"x"\r\n')).encode(), "line 2"),
        ((head + rows[0].rstrip() + ',"","","more"\n').encode(), "line 2 has"),
        (head.replace("Answer.goal", "Answer.gaol").encode(), "no column Answer.goal"),
        (head.replace("HITId", "WorkerId").encode(), '"WorkerId" twice'),
        ((head + rows[0].replace(batch[0]["item"], practice)).encode(), "this study has no item"),
        ((head + "".join(rows) + rows[1]).encode(), "line 10: this worker has rated this item already"),
    ):
        (tmp_path / "r.csv").write_bytes(content)
        with pytest.raises(WordwingError, match=sentence):
            import_batch(study, tmp_path / "r.csv")
    with pytest.raises(WordwingError, match="there is no such file"):
        import_batch(study, tmp_path / "nowhere.csv")
    assert study.ratings() == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("go <script>alert(1)</script>", "go &lt;script&gt;alert(1)&lt;/script&gt;"),
        ('say "hi" & go', "say &quot;hi&quot; &amp; go"),
        ("=1+1", "&#61;1+1"),
        ("@home", "&#64;home"),
        ("café 🚁", "caf&#233; &#128641;"),
        ("to ${video}", "to &#36;{video}"),
        ("two\n lines", "two lines"),
        ("", ""),
    ],
)
def test_texts_are_harmless_in_pages_and_spreadsheets(text, shown):
    assert markup(text) == shown


@pytest.mark.parametrize(
    "url", ["http://example.org", "example.org", "https://", "https://a b", 'https://x/"', "ftp://x"]
)
def test_images_must_be_on_the_web(study, tmp_path, url):
    with pytest.raises(WordwingError, match="--url is"):
        export_batch(study, tmp_path / "batch.csv", url)
    assert not media_folder(tmp_path / "batch.csv").exists()


def test_a_batch_replaces_no_folder_but_its_own(study, tmp_path):
    with pytest.raises(WordwingError, match=r"must end in \.csv"):
        export_batch(study, tmp_path / "batch")
    media_folder(tmp_path / "batch.csv").mkdir()
    (media_folder(tmp_path / "batch.csv") / "mine.txt").touch()
    with pytest.raises(WordwingError, match="is not replaced"):
        export_batch(study, tmp_path / "batch.csv")
    assert (media_folder(tmp_path / "batch.csv") / "mine.txt").exists()
