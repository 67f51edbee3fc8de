"""An infrastructure failure never becomes a score, in a whole `skillc compile`."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_server import (
    Asked,
    FaultyServer,
    answer,
    close_at_once,
    cut_off,
    drip,
    flood,
    late,
    refuse,
    reset,
    say,
)
from whole_compiles import Nursery, Storm, compile_here, compile_in, compiled, messages_of, shop, well

from skillc.frontend import estimate, plan_file
from skillc.models.preflight import QUESTION
from skillc.outcomes import Unmeasured

KEY = "sk-planted-0123456789abcdef"
WAYS = {
    "429": refuse(429, "slow down", headers={"retry-after-ms": "1"}),
    "429 without": refuse(429, "slow down"),
    "500": refuse(500, "oh"),
    "503": refuse(503, "busy"),
    "529": refuse(529, "overloaded"),
    "502 page": answer(502, "<html>bad gateway</html>", "text/html"),
    "slow headers": late(60),
    "slow body": drip(0.5, size=40),
    "half a body": cut_off(),
    "half the chunks": cut_off(chunked=True),
    "reset": reset(),
    "reset after headers": reset(after_headers=True),
    "closed": close_at_once(),
    "invalid json": answer(200, "{not json"),
    "a page": answer(200, "<html>hello</html>", "text/html"),
    "endless": flood(),
    "utf-8": answer(200, b'{"choices": [{"message": {"content": "\xff"}}]}'),
}


NO_ROOM = {"429", "429 without", "503", "529"}


@pytest.fixture(scope="module")
def nursery() -> Nursery:
    return Nursery()


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.quick_cases(1)
def test_a_run_whose_failures_are_all_cured_leaves_the_bytes_of_one_without(tmp_path: Path, protocol: str) -> None:
    written = {}
    for name, script in {"calm": well, "stormy": Storm(WAYS, share=0.25)}.items():
        folder = shop(tmp_path / name, protocol, "timeout = 2 s")
        with FaultyServer(script) as server:
            done = compile_here(folder, server.root if protocol == "anthropic" else server.url, KEY)
        written[name] = compiled(folder)
        charged, paid = (done.spent[account]["total"]["calls"] for account in ("charged", "paid"))  # type: ignore
        if isinstance(script, Storm):
            assert len(script.struck) > 10, script.struck
            # What was sent away for want of room need not count as paid.
            assert paid > charged + sum(count for way, count in script.struck.items() if way not in NO_ROOM)
        else:
            # The preflight is paid and not charged.
            assert paid == charged + 1
        assert done.lock.quarantined == ()
    assert written["stormy"] == written["calm"]


LOST = {"503": refuse(503, "busy"), "reset": reset(), "a page": answer(200, "<html>", "text/html"), "empty": say("")}
LOST["cut"] = say("half of", "length")


@pytest.mark.parametrize("way", LOST)
@pytest.mark.quick_cases(1)
def test_an_example_that_fails_for_good_is_set_aside_and_has_no_score(tmp_path: Path, way: str) -> None:
    # One of 23 examples of validation may be set aside.
    folder = shop(tmp_path / "things", count=120)
    lost = estimate(plan_file(folder / "things.skill")).dataset.validation[3]

    def is_its_rollout(asked: Asked) -> bool:
        # The optimizer is shown it too.
        texts = [message["content"] for message in messages_of(asked)]
        return str(lost.inputs["text"]) in texts[-1] and "[[ ## text ## ]]" in texts[-1]

    with FaultyServer(lambda asked: LOST[way] if is_its_rollout(asked) else well(asked)) as server:
        done = compile_here(folder, server.url, KEY)
    assert done.lock.quarantined == (lost.id,)
    rollouts = done.trained.engine.rollouts
    known = rollouts.known(done.trained.state.initial, lost)
    assert known is not None
    assert all(isinstance(cell, Unmeasured) for cell in known.cells.values())


@pytest.mark.thorough
def test_a_model_that_cannot_be_used_stops_a_compile_before_anything_is_spent(nursery: Nursery, tmp_path: Path) -> None:
    folder = shop(tmp_path / "things")
    with FaultyServer(lambda asked: refuse(401, f"Incorrect API key provided: {KEY}")) as server:
        assert compile_in(nursery, folder, server.url, KEY) == 2
        assert [asked.text for asked in server.asked] == [QUESTION]
        told = (folder / "stderr.txt").read_text()
        assert (
            f"models `optimizer` and `target` (`openai/rulebook` at `{server.url}`) cannot be used: status 401" in told
        )
        assert "check the key in `TEAM_KEY`, or run with `--offline`, which uses the embedded rulebook instead" in told
        assert KEY not in told
        assert "Traceback" not in told
        assert not (folder / "skills").exists()
        # The run never began for the records, so that it goes on as if nothing had been.
        server.script = well
        assert compile_in(nursery, folder, server.url, KEY) == 0


def test_nobody_there_is_said_with_the_way_out(nursery: Nursery, tmp_path: Path) -> None:
    folder = shop(tmp_path / "things")
    assert compile_in(nursery, folder, "http://127.0.0.1:9/v1", KEY) == 2
    told = (folder / "stderr.txt").read_text()
    assert "cannot be used: no connection to `127.0.0.1`: connection refused" in told
    assert "--offline" in told
    assert compile_in(nursery, folder, "http://127.0.0.1:9/v1", KEY, "--sanity") == 2
    assert "connection refused" in (folder / "stderr.txt").read_text()


@pytest.mark.thorough
def test_a_compile_leaves_no_connection_no_task_and_no_warning(nursery: Nursery, tmp_path: Path) -> None:
    """In a process of its own, as a developer runs Python: every unclosed thing is said on standard error."""
    import os
    import subprocess
    import sys

    folder = shop(tmp_path / "things")
    with FaultyServer(
        Storm({"500": refuse(500, "oh", headers={"retry-after-ms": "1"}), "reset": reset()}, share=0.02)
    ) as server:
        done = subprocess.run(
            [sys.executable, "-W", "always::ResourceWarning", "-m", "skillc", "compile", "things.skill"],
            cwd=folder,
            env={**os.environ, "SERVER": server.url, "TEAM_KEY": KEY},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert server.is_left()
    for word in ("nclosed", "never awaited", "never retrieved", "destroyed", "Traceback"):
        assert word not in done.stderr, done.stderr
