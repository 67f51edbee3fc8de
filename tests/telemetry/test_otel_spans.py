"""OpenTelemetry spans of compiles and calls, as a collector on this machine receives them."""

import asyncio
import json
import socket
import subprocess
import sys
from collections import Counter

import pytest
from click.testing import CliRunner
from conftest_cli import PROGRAM, shop_in
from model_plans import Scripted, model, plan_of, reply
from otlp_collector import collector

from skillc import cli
from skillc.errors import SkillcError
from skillc.models.calls import Call, Message, Usage
from skillc.models.client import Client
from skillc.models.failures import CallFailed
from skillc.models.ledger import Spending
from skillc.models.pace import RetryPolicy
from skillc.redaction import Secret
from skillc.telemetry.export import exported, traced_by_environment, wanted
from skillc.telemetry.spans import active

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ONE_EPOCH = PROGRAM.replace("epochs = 2; patience = 6 steps", "epochs = 1; steps = 2")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in (ENDPOINT, CAPTURE, "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        monkeypatch.delenv(name, raising=False)


def compile_in(folder, *options, env=None):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner(env=env).invoke(cli.skillc, ["compile", "things.skill", "--json", *options])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same compile without spans, with spans, and with spans and all replies cached."""
    folders = [tmp_path_factory.mktemp("made") / name for name in ("plain", "traced")]
    for folder in folders:
        folder.mkdir()
        shop_in(folder, ONE_EPOCH)
    plain = compile_in(folders[0])
    with collector() as first:
        traced = compile_in(folders[1], env={ENDPOINT: first.url})
    saved = files_of(folders[1])
    (next((folders[1] / ".skillc/runs").iterdir()) / "run.db").unlink()
    with collector() as second:
        compile_in(folders[1], "--otel", env={ENDPOINT: second.url, CAPTURE: "SPAN_ONLY"})
    return {"plain": plain, "traced": traced, "first": first, "second": second, "files": (files_of(folders[0]), saved)}


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in (folder / "skills").rglob("*") if path.is_file()}


def test_a_traced_compile_writes_the_same_bytes(runs):
    plain, traced = runs["files"]
    assert plain == traced
    assert runs["plain"][0]["spent"] == runs["traced"][0]["spent"]


def test_every_call_is_a_span_below_its_rollout_step_stage_and_run(runs):
    found, report = runs["first"], runs["traced"][0]
    calls = found.named("chat v1")
    assert len(calls) == report["spent"]["charged"]["total"]["calls"]
    assert len({span.trace for span in found.spans}) == 1
    paths = Counter(" > ".join(found.path(span)) for span in calls)
    assert set(paths) >= {
        "run sort-things > stage baseline > rollout > chat v1",
        "run sort-things > stage train > step > stage rollout > rollout > chat v1",
        "run sort-things > stage train > step > stage gate > rollout > chat v1",
        "run sort-things > stage train > step > stage reflect > chat v1",
        "run sort-things > stage final test > rollout > chat v1",
    }
    assert all(path.startswith("run sort-things > stage ") for path in paths)
    assert {span.attributes["skillc.place"] for span in found.named("step")} == {"step 1/2", "step 2/2"}
    assert {"service.name": "skillc"}.items() <= found.resources[0].items()
    assert {path for path, _ in found.requests} == {"/v1/traces"}


def test_a_call_has_the_attributes_of_the_conventions_and_no_content(runs):
    totals = Counter()
    for span in runs["first"].named("chat v1"):
        given = span.attributes
        assert given["gen_ai.operation.name"] == "chat"
        assert (given["gen_ai.provider.name"], given["gen_ai.request.model"]) == ("rulebook", "v1")
        assert given["gen_ai.response.finish_reasons"] == ["stop"]
        assert "gen_ai.input.messages" not in given
        assert "gen_ai.output.messages" not in given
        totals["prompt"] += given.get("gen_ai.usage.input_tokens", 0)
    charged = runs["traced"][0]["spent"]["paid"]["total"]
    assert totals["prompt"] == charged["prompt"]


def test_a_rollout_has_its_example_and_its_score_and_a_step_its_decision(runs):
    rollouts = runs["first"].named("rollout")
    measured = [span for span in rollouts if "skillc.example" in span.attributes]
    assert all(span.attributes["skillc.score.correct"] in (0.0, 1.0) for span in measured)
    assert {span.attributes["skillc.stage"] for span in measured} >= {"baseline", "rollout", "gate", "test"}
    assert all({"skillc.decision", "skillc.result"} <= span.attributes.keys() for span in runs["first"].named("step"))


def test_cached_replies_are_marked_and_count_no_tokens(runs):
    spans = runs["second"].named("chat v1")
    assert spans
    assert all(span.attributes["skillc.cached"] for span in spans)
    assert not any("gen_ai.usage.input_tokens" in span.attributes for span in spans)
    assert not all(span.attributes["skillc.cached"] for span in runs["first"].named("chat v1"))


def test_contents_are_captured_where_the_variable_asks_for_them(runs):
    span = next(each for each in runs["second"].named("chat v1") if each.attributes["skillc.role"] == "target")
    sent = json.loads(span.attributes["gen_ai.input.messages"])
    assert [message["role"] for message in sent] == ["system", "user"]
    assert sent[0]["parts"][0]["type"] == "text"
    (answer,) = json.loads(span.attributes["gen_ai.output.messages"])
    assert answer["finish_reason"] == "stop"
    assert "[[ ## kind ## ]]" in answer["parts"][0]["content"]


def ask(transport, *, call=None, plan=None, retries=None):
    """One call, or the exception that it raises."""
    plan = plan or plan_of(model(name="hosted_vllm/a/model", base_url="http://user:pw@127.0.0.1:8123/v1"))
    call = call or Call("target", "rollout", (Message("user", "my key is sk-live-4242424242"),))
    secrets = [Secret("KEY", "sk-live-4242424242")]

    async def run():
        with Client(plan, transport=transport, retries=retries, secrets=secrets) as client:
            return await client.complete(call)

    try:
        return asyncio.run(run())
    except Exception as problem:
        return problem


def received(monkeypatch, work, **variables):
    notes = []
    with collector() as found:
        for name, value in {ENDPOINT: found.url, **variables}.items():
            monkeypatch.setenv(name, value)
        with exported(notes.append):
            result = work()
    assert notes == []
    return result, found


def test_a_remote_call_names_its_server_parameters_and_usage_and_no_secret(monkeypatch):
    plan = plan_of(
        model(
            name="hosted_vllm/a/model",
            base_url="http://user:pw@127.0.0.1:8123/v1",
            parameters={"temperature": 0.5, "max_tokens": 90, "stop": ["END"], "seed": 3},
        )
    )
    answer = reply("it is sk-live-4242424242")
    answer["usage"]["prompt_tokens_details"] = {"cached_tokens": 4}
    _, found = received(monkeypatch, lambda: ask(Scripted(lambda sent: answer), plan=plan), **{CAPTURE: "true"})
    (span,) = found.named("chat a/model")
    assert span.kind == 3  # a client's
    assert (
        span.attributes.items()
        >= {
            "server.address": "127.0.0.1",
            "server.port": 8123,
            "gen_ai.provider.name": "hosted_vllm",
            "gen_ai.request.model": "a/model",
            "gen_ai.request.temperature": 0.5,
            "gen_ai.request.max_tokens": 90,
            "gen_ai.request.seed": 3,
            "gen_ai.response.model": "m",
            "gen_ai.usage.input_tokens": 5,
            "gen_ai.usage.output_tokens": 2,
            "gen_ai.usage.cache_read.input_tokens": 4,
        }.items()
    )
    assert span.attributes["gen_ai.request.stop_sequences"] == ["END"]
    shown = json.dumps([span.attributes, span.name, span.description])
    assert "sk-live" not in shown
    assert "pw@" not in shown
    assert shown.count("[secret KEY]") == 2


def test_a_failed_call_has_its_kind_of_failure_and_a_redacted_cause(monkeypatch):
    failing = Scripted(lambda sent: CallFailed("empty", "no text, with sk-live-4242424242"))
    problem, found = received(monkeypatch, lambda: ask(failing, retries=RetryPolicy(attempts=1)))
    assert isinstance(problem, CallFailed)
    (span,) = found.named("chat a/model")
    assert span.attributes["error.type"] == "empty"
    assert (span.status, "gen_ai.usage.input_tokens" in span.attributes) == (2, False)
    assert "no text" in span.description
    assert "sk-live" not in span.description


def test_tool_calls_and_images_are_captured_in_their_form(monkeypatch):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    asked = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    call = Call(
        "target",
        "rollout",
        (
            Message("user", ({"type": "text", "text": "what is it"}, image)),
            Message("assistant", "", tool_calls=(asked,)),
            Message("tool", "a lamp", tool_call_id="c1"),
        ),
    )
    _, found = received(monkeypatch, lambda: ask(Scripted(), call=call), **{CAPTURE: "span_and_event"})
    messages = json.loads(found.named("chat a/model")[0].attributes["gen_ai.input.messages"])
    parts = [part for message in messages for part in message["parts"]]
    assert [part["type"] for part in parts] == ["text", "blob", "tool_call", "tool_call_response"]
    assert (parts[1]["mime_type"], parts[1]["content"]) == ("image/png", "")
    assert (parts[2]["name"], parts[2]["arguments"]) == ("look", '{"at": 1}')


def test_a_dead_collector_is_one_note_and_nothing_else(monkeypatch, capfd):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv(ENDPOINT, f"http://user:pw@127.0.0.1:{taken.getsockname()[1]}")
        notes = []
        with exported(notes.append):
            assert active() is not None
            completion = ask(Scripted())
    assert completion.text == "hi"
    (note,) = notes
    assert note.startswith("1 of 1 span could not be sent to http://127.0.0.1:")
    assert "pw" not in note
    assert active() is None
    assert capfd.readouterr().err == ""


def test_a_collector_that_refuses_is_one_note(monkeypatch, capfd):
    notes = []
    with collector(status=400) as found:
        monkeypatch.setenv(ENDPOINT, found.url)
        with exported(notes.append):
            ask(Scripted())
    assert len(notes) == 1
    assert "400" in notes[0]
    assert capfd.readouterr().err == ""


def test_the_queue_is_bounded(monkeypatch):
    """With a queue of two spans and a collector that never answers, the others are dropped and counted."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:{silent.getsockname()[1]}")
        notes = []
        with exported(notes.append):
            for _ in range(8):
                ask(Scripted())
    assert [note.split(" could")[0] for note in notes] == ["8 of 8 spans"]


@pytest.mark.parametrize(
    ("variables", "asks"),
    [
        ({}, False),
        ({ENDPOINT: "http://here:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://here:4318/v1/traces"}, True),
        ({ENDPOINT: "http://here:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({ENDPOINT: "http://here:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, False),
    ],
)
def test_the_standard_variables_turn_it_on(variables, asks):
    assert wanted(variables) is asks


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "`grpc`"), (ENDPOINT, "here", "is not the address of a collector")],
)
def test_what_cannot_be_sent_is_an_error_where_it_was_asked_for_and_else_a_note(monkeypatch, name, value, message):
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    with pytest.raises(SkillcError, match=message), exported(print, asked=True):
        pass
    notes = []
    with exported(notes.append):
        assert active() is None
    assert len(notes) == 1
    assert message in notes[0]


def test_nothing_of_opentelemetry_is_loaded_without_it():
    code = (
        "import sys\n"
        "import skillc.cli.running\n"
        "from skillc.telemetry.export import exported\n"
        "with exported(print): pass\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_provider_of_the_user_s_program_gets_the_spans(monkeypatch):
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr("skillc.telemetry.otel.provider_of_program", lambda: provider)
    with provider.get_tracer("mine").start_as_current_span("my program") as outer, traced_by_environment(print):
        ask(Scripted())
    spans = {span.name: span for span in kept.get_finished_spans()}
    assert spans["chat a/model"].parent.span_id == outer.get_span_context().span_id


def test_a_program_that_calls_its_model_itself_is_one_span_with_the_tokens_that_it_reports(monkeypatch):
    async def run():
        with Client(plan_of(model(name="hosted_vllm/a/model")), transport=Scripted()) as client:
            async with client.outside("target", "rollout", Spending(3), fix="raise it") as report:
                report.usages = (Usage(prompt=10, completion=2), Usage(prompt=5, completion=1))

    _, found = received(monkeypatch, lambda: asyncio.run(run()))
    (span,) = found.spans
    assert (span.name, span.attributes["gen_ai.operation.name"]) == ("invoke_agent a/model", "invoke_agent")
    assert (span.attributes["gen_ai.usage.input_tokens"], span.attributes["gen_ai.usage.output_tokens"]) == (15, 3)
