"""`skills.toml`: read strictly, written without touching what a person wrote."""

import pytest

from skillc.errors import SkillcError
from skillc.publish.manifest import Entry, Policy, read_manifest, write_entry

DIGEST = "a" * 64
WRITTEN = """# ours
[skills.other] # keep this
from = "other.skill"   # and this
project = ["codex"]
adopt = { gain = 2, change = 30.5, sessions = "cleared", files = true }

[skills.route-tickets]
adopt = "never"  # until the audit
from = "tickets.skill"
user = ["hermes"]
"""


def test_an_entry_is_changed_and_all_else_stays(tmp_path):
    path = tmp_path / "skills.toml"
    path.write_text(WRITTEN)
    entry = read_manifest(tmp_path).entries["route-tickets"]
    assert entry == Entry("route-tickets", "tickets.skill", (), ("hermes",), Policy("never"))
    write_entry(tmp_path, entry)
    assert path.read_text() == WRITTEN
    write_entry(tmp_path, Entry("route-tickets", "tickets.skill", ("codex",), ("hermes",), version=DIGEST))
    text = path.read_text()
    assert (
        text.startswith(WRITTEN) and text.removeprefix(WRITTEN) == f'project = ["codex"]\nversion = "sha256:{DIGEST}"\n'
    )
    write_entry(tmp_path, Entry("new", "new.skill", ("codex",)))
    assert path.read_text().startswith(text)
    found = read_manifest(tmp_path).entries
    assert found["other"].policy == Policy("verdict", "improved", 2, 30.5, "cleared", True)
    assert found["route-tickets"].version == DIGEST and found["route-tickets"].policy.who == "never"
    assert found["new"] == Entry("new", "new.skill", ("codex",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[skills", "is not TOML"),
        ("skills = 3", "is no table"),
        ("[skill.x]", "unknown key `skill`"),
        ("[skills.x]\nfrom = 'x.skill'\nto = ['codex']", "unknown key `skills.x.to`"),
        ("[skills.x]", "has no `from`"),
        ("[skills.X_1]\nfrom = 'x.skill'", "is no name of a skill"),
        ("[skills.x]\nfrom = 'x.skill'\nproject = 'codex'", "no list of agents"),
        ("[skills.x]\nfrom = 'x.skill'\nproject = ['clippy']", "no known agent `clippy`"),
        ("[skills.x]\nfrom = 'x.skill'\nproject = ['hermes']", "reads no skills of a project"),
        ("[skills.x]\nfrom = 'x.skill'\nadopt = 'always'", "is no policy"),
        ("[skills.x]\nfrom = 'x.skill'\nadopt = { gian = 2 }", "no limit `gian`"),
        ("[skills.x]\nfrom = 'x.skill'\nadopt = { gain = -2 }", "no number from 0"),
        ("[skills.x]\nfrom = 'x.skill'\nadopt = { gain = nan }", "no number from 0"),
        ("[skills.x]\nfrom = 'x.skill'\nadopt = { verdict = 'worse' }", "neither `improved` nor `any`"),
        ("[skills.x]\nfrom = 'x.skill'\nversion = '123'", "is no digest"),
    ],
)
def test_a_mistake_is_a_message(tmp_path, text, said):
    (tmp_path / "skills.toml").write_text(text)
    with pytest.raises(SkillcError, match=said) as caught:
        read_manifest(tmp_path)
    assert caught.value.message[0].islower() or caught.value.message[0] in "`H"
    assert not caught.value.message.endswith(".")
