"""Codes SK6xx: models, and the commands and functions that can replace one."""

from __future__ import annotations

from skillc.diagnostics.codes.code import FIND, OPTIMIZER, Code, program, trivia, with_target


def _by_native_agent(model: str) -> str:
    return with_target(model, _by_agent('react { tools = [python("library:find")]; tool_calls = native }'))


def _by_agent(rollout: str) -> str:
    return program().replace("output answer: text", f"output answer: text; rollout = {rollout}")


def _judged_by(judge: str, *, optimizer: str = '"rulebook/v1"') -> str:
    judged = f'model referee = {judge}\nmetric good = judge(answer, "Is it polite?", model = referee)'
    models = with_target(_TRAINED, program(judged, gate="candidate.good >= incumbent.good"))
    return models.replace(OPTIMIZER, f"model optimizer = {optimizer}")


_TRAINED = '"openai/gpt-5.5-mini"'

CODES: tuple[Code, ...] = (
    Code(
        601,
        "model without a provider",
        "A model is named `provider/name`, as in litellm: `openai/gpt-5.5-mini`, `hosted_vllm/Qwen/Qwen3.5-4B`. "
        "`rulebook/v1` is the small model without weights that ships with skillc.",
        with_target('"gpt-5.5"'),
        with_target('"openai/gpt-5.5"'),
    ),
    Code(
        602,
        "key in the program",
        'Programs are shared and kept in git. Use `key = env("NAME")`, which reads the key from the environment.',
        with_target('"openai/gpt-5.5" { key = "sk-123" }'),
        with_target('"openai/gpt-5.5" { key = env("OPENAI_API_KEY") }'),
    ),
    Code(
        603,
        "circular reference",
        "`model optimizer = target` reuses a model, `budget = lab.nightly` a budget. Such chains must end in a value.",
        with_target("optimizer").replace(OPTIMIZER, "model optimizer = target"),
        program().replace(OPTIMIZER, "model optimizer = target"),
    ),
    Code(
        604,
        "unused model",
        "A note: models besides `target` and `optimizer` are judges or simulated users, and nothing asks this one.",
        program('model referee = "rulebook/v1"'),
        program(),
    ),
    Code(
        606,
        "judge of the target's family",
        "Models prefer answers that resemble their own, so a judge of the target's family scores the target too high, "
        "and rewards edits that only change the style of its answers. `skillc judge check` measures this bias. Use a "
        "model of another maker, or a panel of judges.",
        _judged_by('"openai/gpt-5.5"'),
        _judged_by('"anthropic/claude-opus-5"'),
    ),
    Code(
        607,
        "the optimizer as a judge",
        "A note: a model that proposes the rules and judges their effect may reward its own style. Use another judge.",
        _judged_by('"anthropic/claude-opus-5"', optimizer='"anthropic/claude-opus-5"'),
        _judged_by('"google/gemini-3-pro"', optimizer='"anthropic/claude-opus-5"'),
    ),
    Code(
        608,
        "weak signal",
        "A noisy signal shrinks the gain of a skill by its sensitivity plus its specificity less 1, and its errors add "
        "to the spread. One that keeps less than half of a gain takes at least four times the examples of an exact "
        "metric for the same gain. `skillc plan` prints the factor and the smallest gain that the test can show.",
        program(goal="noisy(exact_match(answer), sensitivity = 70%, specificity = 65%)"),
        program(goal="noisy(exact_match(answer), sensitivity = 90%, specificity = 85%)"),
    ),
    Code(
        609,
        "single examples compared by a noisy signal",
        "`regressed(m)` and `improved(m)` add up the examples that got worse or better. By a noisy signal some do "
        "although nothing has changed: it was right about one answer and wrong about the next. The message has the "
        "mean loss that such errors alone show if they are independent. In the difference of two means they cancel.",
        program(
            goal="noisy(exact_match(answer), sensitivity = 90%, specificity = 85%)", gate="regressed(correct) <= 5%"
        ),
        program(
            goal="noisy(exact_match(answer), sensitivity = 90%, specificity = 85%)",
            gate="candidate.correct >= initial.correct + 2%",
        ),
    ),
    Code(
        634,
        "invalid setting of an agent",
        "The words of `command(...)` are split like those of a POSIX shell, but run without a shell. Placeholders are "
        "filled at each rollout, each within one word: `{prompt}` (without it, the prompt is on standard input), "
        "`{workspace}`, `{home}`, `{skill}` (the path of SKILL.md), `{report}`, `{model}`, `{base_url}` and `{here}`. "
        "The placeholders of `prompt` are `{question}` and the inputs of the task; those of `files` are the inputs, "
        "the fields and `{id}`. `files` is a path below the program's folder that begins with a folder. `hosts` are "
        "addresses with a port. Double literal braces: `{{name}}`.",
        _by_agent('command("my-agent {promt}")'),
        _by_agent('command("my-agent {prompt}")'),
    ),
    Code(
        635,
        "cap without a maximum of a rollout",
        "An agent calls its model itself, so skillc can't stop it in the middle. A cap on tokens or cost holds because "
        "each rollout reserves the most that it may use before it starts. Declare that maximum: `tokens`, or `cost` "
        "if only the cost is capped. After the rollout the amount that the agent reports is charged, and the rest of "
        "the reservation is released; an agent that reports nothing is charged the maximum.",
        _by_agent("codex").replace("epochs = 4", "epochs = 4; tokens = 1M"),
        _by_agent("codex { tokens = 50_000 tokens }").replace("epochs = 4", "epochs = 4; tokens = 1M"),
    ),
    Code(
        621,
        "invalid command",
        "`exec` is a program with its arguments, split into words like a POSIX shell does, but without a shell. "
        "Placeholders are filled at each call, each within one word, so that a prompt can't add arguments: `{prompt}` "
        "(the whole conversation as one text), `{system}` and `{user}` (its two parts), `{messages}` (path of a JSON "
        "file with the messages in chat format), `{model}` (the name after `exec/`) and `{here}` (the program's "
        "folder). Double literal braces: `{{name}}`.\n\n"
        "A command without a placeholder for the conversation reads it on standard input; one with only `{system}` "
        "reads the rest there. Otherwise standard input is empty. The command runs in a new empty folder unless "
        "`folder` names one. Its environment has `PATH`, `HOME`, the locale and time zone, the model's `key`, and the "
        'variables of `environment = [env("NAME")]`.',
        with_target('"exec/tool" { exec = "tool {promt}" }'),
        with_target('"exec/tool" { exec = "tool {prompt}" }'),
    ),
    Code(
        622,
        "invalid `answer`",
        "`answer` locates the answer of a command. `stdout` is the whole standard output, stripped. "
        '`json(".path[0].to")` is the text at a path of the printed JSON, or of the last line of output that has one '
        'there. `after("marker")` is the text after the last marker. `match("expression")` is the group of the last '
        'match of a regular expression, or the match itself if it has no group. `file("last.txt")` is a file that the '
        "command writes in its working folder; if all calls share a folder, only one may run at a time.\n\n"
        "A missing answer is a failed call, never a score.",
        with_target('"exec/tool" { exec = "tool {prompt}" { answer = json("result") } }'),
        with_target('"exec/tool" { exec = "tool {prompt}" { answer = json(".result") } }'),
    ),
    Code(
        623,
        "incompatible model settings",
        'A model is served by a provider that litellm supports, by a command (`"exec/name"` with `exec = "..."`), or '
        'by your own function (`"mine/name"` with `backend = python("module:function")`). A command receives only its '
        "arguments and input, so put parameters such as `temperature` into the command.",
        with_target('"exec/tool" { exec = "tool {prompt}"; temperature = 0 }'),
        with_target('"exec/tool" { exec = "tool --temperature 0 {prompt}" }'),
    ),
    Code(
        624,
        "missing working folder",
        "`folder` is the working folder of a command, relative to the program. skillc does not create it, because an "
        "empty folder is rarely intended. Without the setting each call runs in a new empty folder.",
        with_target('"exec/tool" { exec = "tool {prompt}" { folder = "workshop" } }'),
        with_target('"exec/tool" { exec = "tool {prompt}" }'),
        files={"trivia.jsonl": trivia(100)},
        found_by="compile",
    ),
    Code(
        625,
        "model that cannot be given tools",
        "With `tool_calls = native` the tools of an agent are sent to the provider, and the model's calls come back in "
        "its API. A command only receives a text, and vLLM recognizes calls only with the parser of the model "
        "(`--enable-auto-tool-choice`, `--tool-call-parser`). With `tool_calls = text`, the default, every model can "
        "act as an agent. If a provider's model does not support tool calls, the first call fails with the provider's "
        "error.",
        _by_native_agent('"exec/tool" { exec = "tool {prompt}" }'),
        _by_native_agent('"openai/gpt-5.5"'),
        files={"library.py": FIND},
    ),
)
