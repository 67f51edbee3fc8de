from scripted_engine import skill

from skillc.document.edits import Add
from skillc.optimize.bundles import bundles
from skillc.optimize.proposals import Proposal

START = skill("You sort.")


def proposals(*cured):
    return [Proposal(Add("rules", f"rule {i}"), (f"e{i}",), cured=n, screened=3) for i, n in enumerate(cured)]


def named(found):
    return [[proposal.edit.text[-1] for proposal in bundle] for bundle in found]


def test_the_best_first_then_the_next_edit_in_place_of_the_weakest_then_none():
    found = named(bundles(START, proposals(3, 3, 2, 1), 3, 4))
    assert found == [["0", "1", "2"], ["0", "1", "3"], ["0", "1"], ["0", "2", "3"]]


def test_one_candidate_is_the_selection_alone():
    assert named(bundles(START, proposals(3, 2, 1), 2, 1)) == [["0", "1"]]


def test_fewer_where_there_are_no_more_that_differ():
    assert named(bundles(START, proposals(3), 2, 5)) == [["0"]]
    assert named(bundles(START, proposals(3, 2), 2, 9)) == [["0", "1"], ["0"], ["1"]]
    assert bundles(START, proposals(0, 0), 2, 3) == []


def test_no_two_bundles_make_the_same_text():
    same = [
        Proposal(Add("rules", "rule 0"), cured=3, screened=3),
        Proposal(Add("rules", "rule 0"), cured=2, screened=3),
    ]
    assert len(bundles(START, same, 1, 3)) == 1
