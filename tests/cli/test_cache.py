import json
import shutil

import pytest
from conftest_cli import skillc


@pytest.fixture
def kept(compiled, tmp_path):
    """A program's folder with the cache of a compile."""
    shutil.copytree(compiled[0], tmp_path / "shop")
    return tmp_path / "shop"


def test_show_tells_replies_and_bytes_by_endpoint_and_model(kept):
    shown = json.loads(skillc("cache", "show", "--json", folder=kept).stdout)
    (group,) = shown["groups"]
    assert (shown["format_version"], group["endpoint"], group["model"]) == (1, "rulebook", "rulebook/v1")
    assert 0 < group["bytes"] <= shown["disk_bytes"]
    done = skillc("cache", "show", "things.skill", folder=kept)
    assert done.returncode == 0
    assert f"{group['entries']:,} replies" in done.stdout
    assert "rulebook/v1" in done.stdout


def test_a_pruned_cache_comes_back_from_its_export(kept):
    assert skillc("cache", "export", "all.jsonl", folder=kept).returncode == 0
    count = len((kept / "all.jsonl").read_text().splitlines())
    dry = skillc("cache", "prune", "--all", "--dry-run", folder=kept)
    assert dry.stdout.startswith(f"would remove {count:,} replies")
    old = skillc("cache", "prune", "--older-than", "1d", "--json", folder=kept)
    assert json.loads(old.stdout)["entries"] == 0
    done = skillc("cache", "prune", "--all", "--json", folder=kept)
    assert json.loads(done.stdout)["entries"] == count
    assert json.loads(done.stdout)["freed_bytes"] > 0
    assert skillc("cache", "import", "all.jsonl", folder=kept).stdout.startswith(f"added {count:,} replies")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "nowhere"), "no cache in"),
        (("prune",), "--older-than 30d"),
        (("prune", "--all", "--model", "x"), "--all"),
        (("prune", "--older-than", "3 moons"), "is not an age"),
        (("import", "missing.jsonl"), "missing.jsonl"),
    ],
)
def test_a_users_mistake_is_a_message_and_status_2(shop, arguments, said):
    done = skillc("cache", *arguments, folder=shop)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
