from skillc.text import counted, cut, free_name, joined, listed, shown


def test_counts_have_their_noun_in_the_right_number():
    assert [counted(n, "row") for n in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]
    assert [counted(n, "reply", "replies") for n in (1, 2)] == ["1 reply", "2 replies"]


def test_parts_are_joined_as_prose():
    assert [joined(parts) for parts in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert joined(["a", "b"], "or") == "a or b"


def test_names_are_listed_in_backticks():
    assert listed(["a", 1]) == "`a`, `1`"
    assert listed(["a", "b", "c"], "or") == "`a`, `b` or `c`"
    assert listed("abcd", most=2) == "`a`, `b` and 2 more"


def test_long_texts_are_cut_on_one_line():
    assert cut("a\n b", 3) == "a b"
    assert shown("abcdef", 3) == "`abc…`"


def test_a_taken_name_gets_a_number():
    assert [free_name("a", taken) for taken in ((), ("a",), ("a", "a_2"))] == ["a", "a_2", "a_3"]
    assert free_name("a", {"a"}, "-") == "a-2"
