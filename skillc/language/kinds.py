"""The table of kinds: the declarations of the language, where each is allowed, and its settings.

The checker, its hints, completion, the reference and `explain` all read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

from skillc.dataclass import dataclass
from skillc.language.forms import (
    DOLLARS,
    ENV,
    FIELD,
    PLAIN_BLOCK,
    PYTHON,
    SWITCH,
    TEXT,
    TIME,
    Form,
    SettingKind,
    amount,
    count,
    number,
    words,
)
from skillc.language.loop import BUDGET, EVOLVE, OPTIMIZE
from skillc.language.rollouts import ANSWER, EXECUTOR, ROLLOUT, TESTS


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of declaration.

    Attributes:
        word: its keyword.
        within: the kinds whose block may contain it; "" is the top of a file.
        name: whether it has a name. With an `optional` name it is for reuse: `budget nightly` in a library.
        about: one line for the reference.
        modifiers: words of which exactly one must come before it.
        suffixes: word sequences that may follow the name.
        once: whether a file may have only one without a name.
        type: whether it has a type, `: type`.
        parameters: whether it may have parameters.
        value: forms of its value; empty if it has none or an expression.
        expression: whether the value is an expression, lowered to a term.
        refers: whether the value may be a reference to a declaration of the same kind, here or in a module.
        settings: of its block; None if it takes no block.
        passes: whether the block passes on settings of other names, with literals as values.
        bare: names that need no value because the language defines them, each with one line for the reference.
    """

    word: str
    within: tuple[str, ...]
    name: Literal["required", "optional", "forbidden"]
    about: str
    modifiers: tuple[str, ...] = ()
    suffixes: tuple[tuple[str, ...], ...] = ()
    once: bool = False
    type: bool = False
    parameters: bool = False
    value: tuple[Form, ...] = ()
    expression: bool = False
    refers: bool = False
    settings: tuple[SettingKind, ...] | None = None
    passes: bool = False
    bare: tuple[tuple[str, str], ...] = ()

    def setting(self, name: str) -> SettingKind | None:
        """Find a setting by name."""
        return next((s for s in self.settings or () if s.name == name), None)


_FIELD_SETTINGS = (
    SettingKind("about", (TEXT,), "description of the field for the model"),
    SettingKind("limit", (amount("tokens", low=1, whole=True),), "the largest number of tokens of a value"),
    SettingKind("column", (TEXT,), "its name in the data file", unset="the name of the field"),
)
_INPUT_SETTINGS = (
    *_FIELD_SETTINGS,
    SettingKind(
        "cut",
        (words("start", "middle", "end"),),
        "the part that is left out where a value exceeds `limit`",
        unset="the whole value is sent",
    ),
    SettingKind(
        "pixels",
        (count(),),
        "the longest side of an image that the target gets; a larger one is scaled down",
        unset="images are sent as they are",
    ),
)

_COMMAND = Form(
    "text",
    block=(
        SettingKind("answer", ANSWER, "where the answer is in the output of the command", default="stdout"),
        SettingKind("folder", (TEXT,), "its working folder", unset="a new one for each call"),
        SettingKind(
            "environment", (Form("list", items=(ENV,)),), "environment variables passed besides `PATH` and `HOME`"
        ),
    ),
)

DTYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")
_SERVE = (
    SettingKind("model", (TEXT,), "a folder of weights, or a name on the hub", unset="the name behind `hosted_vllm/`"),
    SettingKind("revision", (TEXT,), "the commit or branch of a model on the hub", unset="`main`"),
    SettingKind("tokenizer", (TEXT,), "a folder or a name on the hub", unset="that of the model"),
    SettingKind("chat_template", (TEXT,), "a file with the chat template", unset="that of the model"),
    SettingKind(
        "lora",
        (PLAIN_BLOCK, Form("list", items=(TEXT,))),
        'adapters: `{ name = "folder" }` or `["name=folder"]`; each is a model `hosted_vllm/name`',
    ),
    SettingKind(
        "max_len", (count("tokens"),), "limit of tokens of prompt and reply together", unset="the limit of the model"
    ),
    SettingKind("dtype", (words(*DTYPES), TEXT), "the type of weights and activations", unset="that of the model"),
    SettingKind("quantization", (TEXT,), "how weights are quantized", unset="as configured in the model's folder"),
    SettingKind("gpu_share", (number(0, 1),), "share of each GPU's memory for the server", unset="the default of vLLM"),
    SettingKind("tensor_parallel", (count(),), "GPUs that share one copy of the model", default=1),
    SettingKind("data_parallel", (count(),), "copies of the model", default=1),
    SettingKind("port", (count(),), "the port on this machine", unset="a free one"),
    SettingKind("python", (TEXT,), "the interpreter with vLLM", unset="found automatically"),
    SettingKind("keep", (SWITCH,), "whether the server keeps running for the next run", default=False),
    SettingKind("timeout", (TIME,), "time limit of the start", default=Fraction(1800)),
    SettingKind(
        "batch_invariant",
        (SWITCH,),
        "whether replies do not depend on the other calls, with slower kernels",
        unset="on where vLLM and the GPU support it",
    ),
    SettingKind("args", (Form("list", items=(TEXT,)),), "further arguments of vLLM"),
    SettingKind("env", (PLAIN_BLOCK,), "variables of the server's environment"),
)

MODEL_PARAMETERS = (
    SettingKind("base_url", (TEXT, ENV), "address of the endpoint"),
    SettingKind("key", (ENV,), "the environment variable with the key"),
    SettingKind(
        "price",
        (
            Form(
                "block",
                block=(
                    SettingKind("input", (DOLLARS,), "dollars per million tokens sent"),
                    SettingKind("output", (DOLLARS,), "dollars per million tokens received"),
                    SettingKind("cached", (DOLLARS,), "dollars per million tokens cached by the provider"),
                    SettingKind(
                        "call", (DOLLARS,), "largest cost of one call besides tokens, in dollars", default=Fraction(0)
                    ),
                ),
            ),
        ),
        "the price of a million tokens, or of a call",
        unset="the price list of litellm; nothing for a model on this machine",
    ),
    SettingKind("serve", (Form("word", words=("vllm",), block=_SERVE),), "the server that skillc starts"),
    SettingKind("exec", (_COMMAND,), "the command that answers, as in `mytool --prompt {prompt}`"),
    SettingKind("backend", (PYTHON,), "your function that answers"),
    SettingKind("temperature", (number(0, 2),), "sampling temperature", sent=True),
    SettingKind("top_p", (number(0, 1),), "nucleus sampling: share of probability to sample from", sent=True),
    SettingKind("max_tokens", (count("tokens"),), "token limit of a reply, sent with the call", sent=True),
    SettingKind("max_reply", (count("tokens"),), "tokens reserved for a reply in the budget", default=4096),
    SettingKind("seed", (count(low=0),), "the seed that is sent with each call", sent=True),
    SettingKind("timeout", (TIME,), "time limit of one attempt of a call", default=Fraction(300)),
    SettingKind(
        "down", (TIME,), "how long its endpoint may be unreachable before the run stops", default=Fraction(300)
    ),
    SettingKind("concurrency", (count(),), "limit of calls in flight", unset="adapted to the endpoint"),
    SettingKind("rpm", (count(),), "limit of requests per minute"),
    SettingKind("tpm", (count("tokens"),), "limit of tokens per minute, sent and received"),
)

_KINDS = (
    Kind(
        "task",
        ("",),
        "forbidden",
        "the inputs, the outputs, and how one rollout runs",
        once=True,
        settings=(
            SettingKind("rollout", ROLLOUT, "how one rollout runs", default="predict"),
            SettingKind("executor", EXECUTOR, "where rollouts run; changes no outcome", default="local"),
        ),
    ),
    Kind("input", ("task",), "required", "a field given to the model", type=True, settings=_INPUT_SETTINGS),
    Kind("output", ("task",), "required", "a field of the model's answer", type=True, settings=_FIELD_SETTINGS),
    Kind(
        "skill",
        ("",),
        "required",
        "the document that is trained",
        settings=(
            SettingKind(
                "about", (TEXT,), "what the skill is for and when to use it", modifiers=("frozen", "trainable")
            ),
            SettingKind("title", (TEXT,), 'the first heading of SKILL.md; "" for none', unset="from the name"),
            SettingKind("frontmatter", (TEXT,), "further keys of the frontmatter of SKILL.md, as YAML: `license: MIT`"),
            SettingKind("load", (words("always", "on_demand"),), "when the target reads it", default="always"),
            SettingKind(
                "beside",
                (Form("list", items=(TEXT,)),),
                "folders of other skills that the target may open: `../skills/*`",
            ),
            SettingKind("present", (words("advice", "rules"),), "how the target is asked to use it", default="rules"),
            SettingKind("files", (TEXT,), "a folder whose files belong to the skill unchanged: scripts, references"),
        ),
    ),
    Kind(
        "section",
        ("skill", ""),
        "required",
        "a part of the skill, trained or frozen",
        modifiers=("frozen", "trainable", "slow"),
        value=(TEXT,),
        refers=True,
        settings=(
            SettingKind("title", (TEXT,), 'its heading in SKILL.md; "" for none', unset="from the name"),
            SettingKind("limit", (amount("tokens", low=1, whole=True),), "its limit of tokens"),
            SettingKind("file", (TEXT,), "its file in the skill's folder: `references/refunds.md`", unset="SKILL.md"),
            SettingKind("about", (TEXT,), "when to read its file; SKILL.md links the file with it"),
            SettingKind("rename", (SWITCH,), "whether lines of the section `tools` may rename tools", default=False),
            SettingKind("tests", (TESTS,), "the tests that each version of a script must pass: a file or a folder"),
        ),
    ),
    Kind(
        "model",
        ("",),
        "required",
        "the model of a role: `target`, `optimizer`, or the name of a judge",
        value=(TEXT, ENV),
        refers=True,
        settings=MODEL_PARAMETERS,
        passes=True,
    ),
    Kind(
        "data",
        ("",),
        "forbidden",
        "where examples come from and how they are split",
        once=True,
        settings=(
            SettingKind("source", (TEXT,), "a file to split"),
            SettingKind("train", (TEXT,), "the training examples", stages=("rollout", "reflect", "screen")),
            SettingKind("validation", (TEXT,), "the examples that gates are decided on", stages=("baseline", "gate")),
            SettingKind("test", (TEXT,), "the examples of the final test", stages=("final test", "no skill")),
            SettingKind("split", (Form("ratio"),), "train : validation : test", default=(2, 1, 2)),
            SettingKind("group", (FIELD,), "examples with the same value stay in one split"),
            SettingKind("seed", (count(low=0),), "the seed of the split and of the run", default=0, changeable=True),
        ),
    ),
    Kind("field", ("data",), "required", "a column of the data for gates", type=True, settings=_FIELD_SETTINGS),
    Kind("metric", ("",), "required", "a measurement of one rollout", parameters=True, expression=True),
    Kind("goal", ("",), "required", "the metric to optimise; exactly one", expression=True),
    Kind(
        "rubric",
        ("",),
        "required",
        "the criteria of a judge",
        value=(TEXT,),
        refers=True,
        settings=(
            SettingKind(
                "sees",
                (Form("list", items=(words("gold", "trajectory"),)),),
                "what the judge reads besides inputs and output: the right answer, the steps of the rollout",
            ),
            SettingKind("each", (FIELD,), "the column with the statements about an example, one or a list"),
        ),
    ),
    Kind(
        "criterion",
        ("rubric",),
        "required",
        "one quality that a judge looks at",
        value=(TEXT,),
        settings=(SettingKind("weight", (number(0),), "its share in the score of the rubric", default=Fraction(1)),),
    ),
    Kind("optimize", ("",), "optional", "the mechanisms of the loop", once=True, refers=True, settings=OPTIMIZE),
    Kind("budget", ("",), "optional", "caps on the spending of a run", once=True, refers=True, settings=BUDGET),
    Kind(
        "evolve",
        ("",),
        "forbidden",
        "what a night of `skillc evolve` reads, may spend and must prove",
        once=True,
        settings=EVOLVE,
    ),
    Kind(
        "gate",
        ("",),
        "required",
        "a condition that a candidate must meet; all gates must hold",
        suffixes=(("for", "slow"),),
        parameters=True,
        expression=True,
    ),
    Kind(
        "require",
        ("",),
        "required",
        "a condition checked once, before the first step",
        expression=True,
        bare=(
            (
                "improved",
                "delivers the skill only if the final test shows an improvement; any other skill is written to the "
                "candidate folder, and the delivered files stay as they are",
            ),
        ),
    ),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.word: kind for kind in _KINDS})
"""Every kind by its word. `language` and `use` are not declarations."""

_POOL = "removed: `method = gepa` selects candidates from a Pareto front and merges them"
REMOVED: Mapping[tuple[str, str], str] = MappingProxyType(
    {("optimize", "parents"): _POOL, ("optimize", "merge"): _POOL}
)
"""Hints for settings that the language no longer has, by kind and setting."""

EXTRA_PARAMETERS = (
    "api_version",
    "chat_template_kwargs",
    "extra_body",
    "frequency_penalty",
    "logprobs",
    "min_p",
    "noise",
    "presence_penalty",
    "reasoning_effort",
    "repetition_penalty",
    "stop",
    "thinking",
    "top_k",
    "verbosity",
)
"""Well-known parameters of models that are passed on; never reported as misspelt."""

FIELD_TYPES: Mapping[str, str] = {
    "text": "any text",
    "bool": "yes or no; in a metric it counts 1 or 0",
    "number": "a number",
    "integer": "a whole number",
    "json": "a JSON object or list",
    "file": "the path of a file",
    "image": "the path of an image",
    "list": "`list[text]`, `list[number]`: items of one type; `list` alone is `list[text]`",
    "none": "the value may be missing: `text | none`",
}
TYPES = tuple(name for name in FIELD_TYPES if name != "none")
PARAMETERS: Mapping[str, str] = {
    "metric": "a metric's name, or an expression of one rollout",
    "claim": "a comparison of two means: `candidate.m > incumbent.m`",
    "condition": "a condition on one rollout",
    "text": "a field, or a text in quotes",
    "texts": "a list of texts in quotes",
    "field": "a field that examples can be grouped by",
    "rubric": "a rubric, or a text in quotes",
    "model": "a model's role",
    "skill": "a skill of the program",
}
"""Types of parameters, but for quantities."""
DATA_FILES = ("source", "train", "validation", "test")
"""The settings of `data` that name a file."""

STATES: Mapping[str, str] = {
    "candidate": "the skill that the gate decides on",
    "incumbent": "the skill that the candidate was made from and would replace",
    "best": "the accepted skill with the highest mean of the goal so far",
    "initial": "the skill of the program, before the first step",
}


def default_of(kind: str, *path: str) -> Any:
    """The default of a setting, or of one in the block of another: `default_of("model", "price", "call")`."""
    settings: Iterable[SettingKind] = KINDS[kind].settings or ()
    for name in path:
        found = next(each for each in settings if each.name == name)
        settings = [each for form in found.forms for each in form.block or ()]
    return found.default


def kinds_in(parent: str) -> Mapping[str, Kind]:
    """The kinds that a block may contain; "" is the top of a file."""
    return {kind.word: kind for kind in _KINDS if parent in kind.within}
