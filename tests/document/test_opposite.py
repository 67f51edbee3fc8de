"""Small changes that turn a rule into its opposite."""

import pytest

from skillc.document.change import annotate_opposites, describe_opposite


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("Do not answer libs for tools.", "Do answer libs for tools.", "`not` was dropped"),
        ("Answer utils for a viewer.", "Never answer utils for a viewer.", "`never` was added"),
        ("A refund goes to billing.", "A refund doesn't go to billing.", "`doesn't` was added"),
        ("Answer W1 for maps except on Mondays.", "Answer W1 for maps on Mondays.", "`except` was dropped"),
        ("Don't answer W1 for old maps.", "Never answer W1 for old maps.", None),
        ("If red then W1 else W3.", "If red then W3 else W1.", "`w1` and `w3` were swapped"),
        ("If red then W1.", "If red then W3.", "`w1` became `w3`"),
        ("If red then W1.", "If blue then W1.", None),
        ("Answer W1 for maps.", "Keep the title short and never add a full stop to it.", None),
        ("Answer W1 for maps.", "Answer W1 for maps.", None),
    ],
)
def test_what_turns_a_rule_round_is_pointed_out(before, after, found):
    assert describe_opposite(before, after, ("W1", "W3")) == found


def test_the_diff_of_a_program_points_it_out_beside_the_lines():
    lines = annotate_opposites(["- - Do not answer libs for tools.", "+ - Do answer libs for tools.", "  - Else misc."])
    assert lines[2:] == ("! may be the opposite: `not` was dropped", "  - Else misc.")


def test_without_labels_only_negations_count():
    assert describe_opposite("If red then W1.", "If red then W3.") is None
