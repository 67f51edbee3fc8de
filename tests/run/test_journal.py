import json
from contextlib import closing

import pytest

from skillc.errors import SkillcError
from skillc.run.journal import Journal

DECISIONS = [{"decision": 1, "result": "accept"}, {"decision": 2, "result": "reject", "blame": "better"}]


def write(path, decisions):
    journal = Journal(path)
    with closing(journal):
        for decision in decisions:
            journal.record(decision)
    return journal


def test_a_run_that_goes_on_adds_to_what_it_recorded(tmp_path):
    path = tmp_path / "decisions.jsonl"
    write(path, DECISIONS[:1])
    assert write(path, DECISIONS).known == 1
    assert [json.loads(line)["decision"] for line in path.read_text().splitlines()] == DECISIONS


def test_a_run_that_decides_otherwise_is_stopped(tmp_path):
    path = tmp_path / "decisions.jsonl"
    write(path, DECISIONS)
    with pytest.raises(SkillcError, match="decision 2 differs"):
        write(path, [DECISIONS[0], {"decision": 2, "result": "accept"}])
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_torn_tail_is_cut_off(tmp_path, cut):
    path = tmp_path / "decisions.jsonl"
    write(path, DECISIONS)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert write(path, DECISIONS).known == 1
    assert path.read_bytes() == whole


def test_a_changed_line_ends_what_is_believed(tmp_path):
    path = tmp_path / "decisions.jsonl"
    write(path, DECISIONS)
    path.write_text(path.read_text().replace('"accept"', '"reject"', 1))
    with closing(Journal(path)) as journal:
        assert journal.known == 0
    assert path.read_text() == ""
