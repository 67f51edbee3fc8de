from dataclasses import replace

from scripted_engine import skill

from skillc.document.edits import Add
from skillc.optimize.propose.proposals import Proposal
from skillc.optimize.screen.candidates import bundles
from skillc.outcomes import MICRO

START = skill("You sort.")


def proposal(text, cured, name=""):
    """One that cured so many examples of its own."""
    tried = [(f"{name or text}-{i}", MICRO if i < cured else 0) for i in range(3)]
    return Proposal(Add("rules", text), tuple(example for example, _ in tried), moved=tuple(tried))


def proposals(*cured):
    return [proposal(f"rule {i}", count) for i, count in enumerate(cured)]


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
    same = [proposal("rule 0", 3, "a"), proposal("rule 0", 2, "b")]
    assert len(bundles(START, same, 1, 3)) == 1


def test_what_needs_an_edit_goes_with_it():
    """The second cures only beside the first, so no bundle has it alone."""
    first, second, third = proposals(1, 3, 2)
    found = bundles(START, [first, replace(second, needs=(first.edit,)), third], 3, 9)
    assert named(found)[0] == ["0", "1", "2"]
    assert ["2"] in named(found)
    assert all("0" in bundle for bundle in named(found) if "1" in bundle)
