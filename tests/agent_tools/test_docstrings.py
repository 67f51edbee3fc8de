"""What a tool's docstring says, in the three styles."""

import pytest

from skillc.tools.docstrings import read_docstring

GOOGLE = """Find an order.

    Use it for questions about
    a delivery.

    Args:
        number (str): the order's
            number.
        full: whether to return
            all of it: yes or no.

    Returns:
        The order.
    """
NUMPY = """Find an order.

    Use it for questions about a delivery.

    Parameters
    ----------
    number : str
        the order's number.
    full : bool, optional
        whether to return all of it: yes or no.

    Returns
    -------
    dict
    """
SPHINX = """Find an order.

    Use it for questions about a delivery.

    :param number: the order's number.
    :param bool full: whether to return
        all of it: yes or no.
    :returns: the order.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_the_text_and_the_arguments_are_read_in_every_style(text) -> None:
    found = read_docstring(text)
    assert found.about == "Find an order.\nUse it for questions about a delivery."
    assert found.arguments == {"number": "the order's number.", "full": "whether to return all of it: yes or no."}


@pytest.mark.parametrize("text", [None, "", "   "])
def test_nothing_is_nothing(text) -> None:
    assert read_docstring(text) == read_docstring("")
    assert not read_docstring(text).about
