"""What is said about models that a command or a function of the user's own answers for."""

from __future__ import annotations

import pytest
from checking import clean, codes, entity, program, run
from hypothesis import given
from hypothesis import strategies as st

from skillc.diagnostics.diagnostic import Diagnostic, Severity
from skillc.language.checked import Invocation, Items
from skillc.language.commands import fill_placeholders, json_path, placeholders, split_command


def with_target(text: str) -> str:
    return program().replace('model target = "rulebook/v1"', f"model target = {text}")


def only(text: str) -> tuple[Diagnostic, str]:
    """The one error, and what it points at."""
    [found] = [d for d in run(with_target(text)).diagnostics if d.severity is Severity.ERROR]
    return found, found.primary.source.slice(found.primary.span)


@pytest.mark.parametrize(
    "text",
    [
        '"exec/tool" { exec = "tool {prompt}" }',
        '"exec/tool" { exec = "tool" }',
        '"exec/tool" { exec = "{here}/tool --system {system}" { answer = stdout } }',
        '"exec/tool" { exec = "tool {system} {user} {model} {{prompt}} {a: 1}"; timeout = 2 min }',
        '"exec/tool" { exec = "tool {prompt}"; price { call = $0.05 }; key = env("KEY"); rpm = 3 }',
        '"exec/tool" { exec = "tool {messages}" { answer = json(".a[0].b-c"); folder = "ws" } }',
        '"exec/x" { exec = "x -o last.txt {prompt}" { answer = file("last.txt"); environment = [env("A")] } }',
        '"exec/x" { exec = "x" { answer = file("out/a.txt"); folder = "ws" }; concurrency = 1 }',
        '"exec/x" { exec = "x" { answer = after("Answer:") }; max_reply = 900 tokens }',
        '"exec/x" { exec = "x" { answer = match("""(?s)Answer:\\s*(.*)""") } }',
        '"mine/large" { backend = python("own:answer"); temperature = 0; base_url = "http://x"; key = env("KEY") }',
        'env("TARGET")',
        'env("TARGET") { temperature = 0; key = env("KEY") }',
    ],
)
def test_what_can_be_written(text: str) -> None:
    clean(with_target(text))


@pytest.mark.parametrize(
    ("text", "code", "place", "said", "hint"),
    [
        ('{ exec = "tool {promt}" }', "SK621", "{promt}", "placeholder `{promt}`", "did you mean `prompt`?"),
        ('{ exec = "tool {xyz}" }', "SK621", "{xyz}", "placeholder `{xyz}`", "`{messages}`"),
        ('{ exec = "tool \'x {prompt}" }', "SK621", "exec =", "quote", "close it"),
        ('{ exec = "  " }', "SK621", "exec =", "no program", "mytool"),
        ('{ exec = "{model} {prompt}" }', "SK621", "{model}", "the program can't", "name of the program"),
        ('{ exec = "tool {user}" }', "SK621", "{user}", "omits the system messages", "`{system}`"),
        ('{ exec = "tool" { folder = "" } }', "SK621", "folder =", "is empty", "remove it"),
        ('{ exec = "tool" { environment = [env("A=b")] } }', "SK621", '"A=b"', "not the name of", "the name alone"),
        ('{ exec = "tool" { answer = json("result") } }', "SK622", "answer =", "not a path into JSON", "`json("),
        ('{ exec = "tool" { answer = json(".a..b") } }', "SK622", "answer =", "not a path into JSON", "`json("),
        ('{ exec = "tool" { answer = after("") } }', "SK622", "answer =", "marker is empty", "Answer:"),
        ('{ exec = "tool" { answer = match("(") } }', "SK622", "answer =", "not a regular expression", "`re`"),
        ('{ exec = "tool" { answer = match("(a)(b)") } }', "SK622", "answer =", "2 groups", "(?:"),
        ('{ exec = "tool" { answer = file("/etc/x") } }', "SK622", "answer =", "not a file in", "last.txt"),
        ('{ exec = "tool" { answer = file("../x") } }', "SK622", "answer =", "not a file in", "last.txt"),
        ('{ exec = "tool" { answer = file("") } }', "SK622", "answer =", "not a file in", "last.txt"),
        ('{ exec = "t" { answer = file("x"); folder = "w" } }', "SK622", "answer =", "the same", "concurrency = 1"),
        ('{ exec = "tool"; base_url = "http://x" }', "SK623", "base_url =", "`base_url` can't be", "keep one"),
        ('{ exec = "tool"; serve = vllm { max_len = 9 } }', "SK623", "serve =", "`serve` can't be", "keep one"),
        ('{ exec = "tool"; backend = python("a:b") }', "SK623", "backend =", "`backend` can't be", "keep one"),
        ('{ exec = "tool"; temperature = 0 }', "SK623", "temperature =", "not sent to a command", "as an option"),
        ('{ exec = "tool"; top_k = 3 }', "SK623", "top_k =", "not sent to a command", "as an option"),
        ('{ exec = "tool"; folder = "ws" }', "SK202", "folder", "unknown setting `folder`", "block of `exec`"),
        ('{ exec = "tool"; answer = json(".x") }', "SK202", "answer", "unknown setting `answer`", "block of `exec`"),
        ('{ exec = "tool" { timeout = 2 min } }', "SK211", "timeout", "not allowed here", "block of `model`"),
        ('{ exec = "tool" { answer = jsn(".x") } }', "SK313", "jsn", "`answer` takes", "did you mean `json`?"),
        ("{ temperature = 0 }", "SK623", "target", "no command is configured", "add `exec ="),
    ],
)  # fmt: skip
def test_each_mistake_has_its_place_its_code_and_its_fix(
    text: str, code: str, place: str, said: str, hint: str
) -> None:
    found, shown = only(f'"exec/tool" {text}')
    assert found.code == code
    assert shown.startswith(place)
    assert said in found.message
    assert hint in (found.hint or "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"openai/gpt-5.5" { exec = "tool" }', "its provider is not `exec`"),
        ('"exec/tool" { backend = python("a:b"); exec = "tool" }', "`backend` can't be combined"),
        ('"rulebook/v1" { backend = python("a:b") }', "a built-in provider"),
        ('"mine/x" { backend = python("a") }', "not the name of a function"),
        ('"mine/x" { backend = python("a:b"); serve = vllm { max_len = 9 } }', "`serve` can't be combined"),
    ],
)
def test_one_thing_answers_for_a_model(text: str, said: str) -> None:
    found, _ = only(text)
    assert (found.code, said in found.message) == ("SK623", True)


def test_a_model_that_reuses_a_command_keeps_its_rules() -> None:
    text = with_target('"exec/tool" { exec = "tool" }').replace(
        "model optimizer = target", "model optimizer = target { temperature = 0 }"
    )
    assert codes(text) == ["SK623"]


@pytest.mark.parametrize("text", ['envv("X")', "env(X)", 'env("A", "B")', 'env.x("A")'])
def test_a_name_that_is_none_is_no_model(text: str) -> None:
    assert codes(with_target(text))


def test_the_checker_hands_on_what_was_written() -> None:
    block = '"exec/tool" { exec = "tool {prompt}" { answer = json(".x"); environment = [env("B"), env("A")] } }'
    command = entity(clean(with_target(block)), "model", "target").settings["exec"]
    assert command.value == "tool {prompt}"
    assert command.block["answer"].value == Invocation("json", (".x",))
    assert command.block["environment"].value == Items((Invocation("env", ("B",)), Invocation("env", ("A",))))


# ---- templates ------------------------------------------------------------------------------------


@given(st.text())
def test_a_template_without_places_is_the_text_itself_but_for_doubled_braces(text: str) -> None:
    if not list(placeholders(text)) and "{{" not in text:
        assert fill_placeholders(text, lambda place: "!") == text


@given(st.lists(st.sampled_from(["{prompt}", "{{prompt}}", "{user}", "a b", "{", "}", "'"])))
def test_every_place_is_filled_once_and_in_order(parts: list[str]) -> None:
    seen: list[str] = []
    text = "".join(parts)
    expected = list(placeholders(text))
    fill_placeholders(text, lambda place: seen.append(place) or "{prompt}")  # type: ignore[func-returns-value]
    assert seen == expected


@given(
    st.lists(
        st.text(alphabet=st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1), min_size=1
    )
)
def test_words_are_those_of_a_shell(words: list[str]) -> None:
    import shlex

    assert split_command(shlex.join(words)) == tuple(words)


@given(st.text())
def test_a_path_is_read_or_refused(text: str) -> None:
    steps = json_path(text)
    if steps is not None:
        shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
        assert json_path(shown) == steps
