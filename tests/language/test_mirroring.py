import pytest

from wordwing.language.tokenizer import mirrored


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("turn left at the barrel", "turn right at the barrel"),
        ("turn right and go right to the bed", "turn left and go left to the bed"),
        ("stop right in front of the boat", "stop right in front of the boat"),
        ("stop right next to it on your right", "stop right next to it on your left"),
        ("on its right before the well", "on its left before the well"),
        ("turn right now", "turn left now"),
        ("yaw 135 right now go 2 feet right next stop", "yaw 135 left now go 2 feet left next stop"),
        (
            "go left no wait right now stop 2 feet right next to it",
            "go right no wait left now stop 2 feet right next to it",
        ),
        ("until you are looking right at the palm", "until you are looking right at the palm"),
        ("hang a right at the stove", "hang a left at the stove"),
        ("circle it clockwise", "circle it counterclockwise"),
        ("circle it counter clockwise on the left", "circle it clockwise on the right"),
        ("go around ccw", "go around cw"),
        ("the rock at your 2 o clock", "the rock at your 10 o clock"),
        ("twelve o clock then nine oclock", "twelve o clock then three oclock"),
        ("go two meters to the leftmost cone", "go two meters to the rightmost cone"),
        ("", ""),
    ],
)
def test_left_and_right_change_places_and_nothing_else_does(text, other):
    assert mirrored(text.split()) == other.split()


def test_what_is_mirrored_twice_is_what_it_was():
    text = "turn left at 4 o clock go clockwise right behind the leftmost chair and right at the right wall stop"
    assert mirrored(mirrored(text.split())) == text.split()
