"""`rollout = code` in containers, with and without named hosts."""

from test_code_rollouts import block, observed, plan, run
from test_sandbox import IMAGE, web

GET = """
import urllib.request
for port in PORTS:
    try:
        print(urllib.request.urlopen(f"http://localhost:{port}/", timeout=5).read().decode())
    except OSError:
        print("refused")
"""


def test_files_last_from_round_to_round_and_limits_are_observations(kind, tmp_path) -> None:
    made = plan(kind, limits={"image": IMAGE, "memory": 2 * 10**8, "time": 20})
    rounds = ["open('word', 'w').write('ship')", "print(open('word').read())", "x = bytearray(10**9)", "1 / 0"]
    done = run(tmp_path, made, *map(block, rounds), "billing")
    assert done.rollout.failure is None, done.rollout.detail
    assert done.trajectory.answer == {"team": "billing"}
    nothing, word, memory, error = observed(done)
    assert nothing.text == "it printed nothing"
    assert word.text == "ship"
    assert memory.failed
    assert "it used more memory than 200,000,000 bytes" in memory.text
    assert error.failed
    assert "ZeroDivisionError" in error.text


def test_code_reaches_declared_hosts_and_no_other(kind, tmp_path) -> None:
    with web(b"hello") as known, web(b"hidden") as other:
        made = plan(kind, limits={"image": IMAGE}, hosts=[f"localhost:{known}"])
        done = run(tmp_path, made, block(GET.replace("PORTS", str([known, other]))), "billing")
    assert done.rollout.failure is None, done.rollout.detail
    (seen,) = observed(done)
    assert seen.text.split() == ["hello", "refused"]
