"""`skillc sessions report` counts groups of like requests."""

import json

from click.testing import CliRunner
from labelled import agent, make_store, session, shop_sessions

from skillc.cli.sessions import sessions


def test_like_requests_are_one_group(tmp_path):
    again = [session(f"z{i}", f"Where is order {i}?", agent("shipping")) for i in range(4)]
    path = make_store(tmp_path / "s.db", [*shop_sessions()[0], *again])
    run = CliRunner()
    shown = run.invoke(sessions, ["report", "--store", str(path)], catch_exceptions=False)
    assert "usable sessions by request: 31 groups, 1 of several sessions, the largest of 4" in " ".join(
        shown.output.split()
    )
    values = json.loads(run.invoke(sessions, ["report", "--store", str(path), "--json"]).output)
    assert (values["groups"], values["largest_group"]) == (31, 4)


def test_an_empty_store_has_no_group(tmp_path):
    path = make_store(tmp_path / "s.db", [])
    values = json.loads(CliRunner().invoke(sessions, ["report", "--store", str(path), "--json"]).output)
    assert (values["groups"], values["largest_group"]) == (0, 0)
