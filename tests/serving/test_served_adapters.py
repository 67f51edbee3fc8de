"""`skillc eval` with an adapter: one server for the base and the adapter, or a server that someone else runs."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest_cli import skillc
from model_plans import model
from places import SERVED

from skillc.errors import SkillcError
from skillc.evaluate.adapters.adapter import Adapter, check_served

ADAPTED = SERVED.replace("max_len = 4096; SETTINGS", "max_len = 4096")


def adapter_in(folder):
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 24}))
    (folder / "adapter_model.safetensors").write_bytes(b"adapted")
    (folder / "training.json").write_text(json.dumps({"hours": 0.5, "used": "0" * 10}))
    return folder


def test_base_and_adapter_are_answered_by_one_server(place):
    place.program(text=ADAPTED)
    adapter_in(place.folder / "tuned")
    line = ("eval", "things.skill", "--adapter", "tuned", "--arms", "base,lora", "--split", "validation", "--json")
    done = skillc(*line, folder=place.folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (start,) = place.starts
    assert f"tuned={place.folder / 'tuned'}" in start["argv"]
    # Rank 24 needs the next size that vLLM has.
    assert start["argv"][start["argv"].index("--max-lora-rank") + 1] == "32"
    assert [(arm["arm"], arm["model"]) for arm in told["arms"]] == [
        ("base", "hosted_vllm/./models/tiny"),
        ("lora", "hosted_vllm/tuned"),
    ]
    # This server has no adapters: both answer the same, and nothing is claimed.
    (pair,) = told["pairs"]
    assert (pair["gain"], pair["wins"], pair["losses"]) == (0, 0, 0)
    assert {arm["n"] for arm in told["arms"]} == {told["examples"]}
    assert told["adapters"][0]["training_hours"] == 0.5
    assert not place.running()


class Listing(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"object": "list", "data": self.server.cards}).encode()
        self.send_response(200 if self.path == "/v1/models" else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def listing(*cards):
    """A server that lists models."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listing)
    server.cards = [dict(zip(("id", "root", "parent"), card, strict=True)) for card in cards]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def checked(url, root):
    target = model("target", name="hosted_vllm/base", base_url=url)
    tuned = model("adapter tuned", name="hosted_vllm/tuned", base_url=url)
    return check_served(target, [Adapter("tuned", tuned, None, None, "0")], root)


BASE = ("base", "/models/base", None)


def test_an_adapter_of_the_target_on_another_server_is_accepted(tmp_path):
    with listing(BASE, ("tuned", "/adapters/tuned", "base")) as url:
        assert checked(url, tmp_path) == []
    # The base under two names.
    with listing(("qwen", "/models/base", None), BASE, ("tuned", "/adapters/tuned", "qwen")) as url:
        assert checked(url, tmp_path) == []


def test_a_merged_adapter_is_a_model_of_its_own_which_is_noted(tmp_path):
    with listing(BASE, ("tuned", "/merged", None)) as url:
        (note,) = checked(url, tmp_path)
    assert "served as a model of its own" in note


@pytest.mark.parametrize(
    ("cards", "message"),
    [
        ([BASE], "does not serve `tuned`"),
        (
            [BASE, ("other", "/models/other", None), ("tuned", "/t", "other")],
            "is an adapter of `other`, and the target",
        ),
    ],
)
def test_another_models_adapter_and_a_missing_one_are_refused(tmp_path, cards, message):
    with listing(*cards) as url, pytest.raises(SkillcError, match=message) as error:
        checked(url, tmp_path)
    assert error.value.hint


def test_a_server_that_does_not_answer_is_no_verdict(tmp_path):
    with listing(BASE) as url:
        pass
    with pytest.raises(SkillcError, match="does not answer to `/models`") as error:
        checked(url, tmp_path)
    assert error.value.hint == "start the server, or check its address and key"
