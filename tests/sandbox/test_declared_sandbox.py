"""The setting `sandbox`, read in one way for code, agents and the doctor."""

from skillc.sandbox.policy import IMAGE, Limits, declared_sandbox

DEFAULTS = Limits(time=7, memory=1000, processes=5, file_size=1, disk=400, output=9)


def test_without_the_setting_any_sandbox_has_the_defaults():
    found = declared_sandbox(None, DEFAULTS)
    assert (found.kind, found.image) == (None, IMAGE)
    assert found.limits == Limits(time=7, memory=1000, processes=5, file_size=400, disk=400, output=9)


def test_a_word_is_a_sandbox_without_settings():
    assert declared_sandbox("landlock").kind == "landlock"
    assert declared_sandbox("landlock").limits.memory == Limits().memory


def test_a_block_changes_what_it_names():
    setting = {"kind": "docker", "image": "own:1", "memory": 10**9, "disk": 500, "time": 1.5}
    found = declared_sandbox(setting, DEFAULTS)
    assert (found.kind, found.image) == ("docker", "own:1")
    assert found.limits == Limits(time=1.5, memory=10**9, processes=5, file_size=500, disk=500, output=9)
