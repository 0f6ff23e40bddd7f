"""Tables in three languages, with every sign that means something in them."""

from html.parser import HTMLParser

import pytest

from wordwing.evaluation.report.labels import slug
from wordwing.evaluation.report.tables import Section, Table, render_table

TABLE = Table(
    "results-cage",
    "Results, cage",
    ("SR is in %.", "Data differ."),
    ("system", "n", "SR, %"),
    (
        Section("Test, lab", (("STOP", "9", "0.0 (0.0–29.9)"), ("ORACLE", "9", "100.0 (70.1–100.0)"))),
        Section("", (("mine", "1", "−2.0"),)),
    ),
    (("", 1), ("1 segment", 2)),
)

NASTY = "<script>alert('1')</script> a|b & c_d 50% $x$ {y} #1 ~ ^ \\ *z* `t` [u]"


class Elements(HTMLParser):
    """What a browser makes of a page: opened and closed elements, and all text."""

    def __init__(self, page):
        super().__init__()
        self.opened, self.stack, self.text = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.opened.append((tag, dict(attributes)))
        self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def nasty():
    return Table(NASTY, NASTY, (NASTY,), ("system", NASTY), (Section(NASTY, ((NASTY, NASTY),)),), ((NASTY, 2),))


def test_markdown_is_what_github_shows_as_a_table():
    assert render_table(TABLE, "md") == (
        "**Results, cage**\n"
        "\n"
        "| system | 1 segment: n | 1 segment: SR, % |\n"
        "| --- | ---: | ---: |\n"
        "| **Test, lab** | | |\n"
        "| STOP | 9 | 0.0 (0.0–29.9) |\n"
        "| ORACLE | 9 | 100.0 (70.1–100.0) |\n"
        "| mine | 1 | −2.0 |\n"
        "\n"
        "SR is in %. Data differ.\n"
    )


def test_latex_is_a_floating_table_with_booktabs_lines():
    assert render_table(TABLE, "tex") == (
        "\\begin{table}\n"
        "\\centering\n"
        "\\setlength{\\belowcaptionskip}{6pt}\n"
        "\\setlength{\\tabcolsep}{4pt}\n"
        "\\caption{Results, cage. SR is in \\%. Data differ.}\n"
        "\\label{tab:results-cage}\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        "\\begin{tabular}{lrr}\n"
        "\\toprule\n"
        " & \\multicolumn{2}{c}{1 segment} \\\\\n"
        "\\cmidrule(lr){2-3}\n"
        "system & n & SR, \\% \\\\\n"
        "\\midrule\n"
        "\\multicolumn{3}{l}{\\textit{Test, lab}} \\\\\n"
        "STOP & 9 & 0.0 (0.0--29.9) \\\\\n"
        "ORACLE & 9 & 100.0 (70.1--100.0) \\\\\n"
        "\\midrule\n"
        "mine & 1 & $-$2.0 \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}}\n"
        "\\end{table}\n"
    )


def test_html_says_what_heads_what():
    page = Elements(render_table(TABLE, "html"))
    assert not page.stack
    assert [tag for tag, _ in page.opened].count("tbody") == 2
    assert ("table", {"id": "results-cage"}) in page.opened
    heads = [attributes for tag, attributes in page.opened if tag == "th"]
    assert [head["scope"] for head in heads] == [
        "colgroup", "col", "col", "col", "rowgroup", "row", "row", "row",
    ]  # fmt: skip
    assert [head.get("colspan") for head in heads if "colspan" in head] == ["2", "3"]
    assert {"Results, cage", "SR is in %. Data differ.", "100.0 (70.1–100.0)"} <= set(page.text)


def test_html_of_a_nasty_table_holds_no_markup_of_others():
    page = Elements(render_table(nasty(), "html"))
    allowed = {"table", "caption", "strong", "span", "thead", "tbody", "tr", "th", "td"}
    assert {tag for tag, _ in page.opened} <= allowed
    assert page.text.count(NASTY) == 7  # title, note, span, column, section, two cells


def test_in_latex_no_line_ends_between_a_number_and_its_percent_sign():
    table = Table("t", "Intervals", ("In brackets 95 % intervals.",), ("system", "SR, %"), ())
    assert "In brackets 95~\\% intervals." in render_table(table, "tex")


def test_latex_of_a_nasty_table_holds_no_commands_of_others():
    [row] = [
        line for line in render_table(nasty(), "tex").splitlines() if line.endswith(r"\\") and "system" not in line
    ][-1:]
    escaped = (
        r"\textless{}script\textgreater{}alert('1')\textless{}/script\textgreater{} a\textbar{}b \& c\_d 50\% \$x\$ "
        r"\{y\} \#1 \textasciitilde{} \textasciicircum{} \textbackslash{} *z* `t` [u]"
    )
    assert row == rf"{escaped} & {escaped} \\"


def test_markdown_of_a_nasty_table_holds_no_markup_of_others():
    row = render_table(nasty(), "md").splitlines()[-3]
    escaped = r"\<script\>alert('1')\</script\> a\|b &amp; c\_d 50% $x$ {y} #1 \~ ^ \\ \*z\* \`t\` \[u\]"
    assert row == f"| {escaped} | {escaped} |"


def test_a_cell_of_several_lines_stays_in_its_row():
    table = Table("t", "t", (), ("a", "b"), (Section("", (("x\ny", "1\r\n2"),)),))
    assert "| x y | 1 2 |" in render_table(table, "md")
    assert "x y & 1 2 \\\\" in render_table(table, "tex")
    assert "<td>1 2</td>" in render_table(table, "html")


def test_a_row_that_does_not_fit_is_a_mistake():
    with pytest.raises(ValueError, match="do not match"):
        Table("t", "t", (), ("a", "b"), (Section("", (("x",),)),))
    with pytest.raises(ValueError, match="do not match"):
        Table("t", "t", (), ("a", "b"), (), (("over", 3),))


def test_names_are_fit_for_links():
    assert slug("results", "My corpus_2", "human") == "results-my-corpus-2-human"
