"""The table of kinds: the words of the language, where each is allowed, and what each takes.

Data, not code: the checker, the hints, completion, the reference and `explain` all read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

from skillc.language.forms import (
    DOLLARS,
    ENV,
    FIELD,
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
from skillc.language.loop import BUDGET, OPTIMIZE


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of statement.

    Attributes:
        word: the word that makes it.
        within: the kinds whose block may contain it; the empty word is the top of a file.
        name: whether it has a name. With an `optional` name it is there to be reused: `budget nightly` in a library.
        about: one line for the reference.
        modifiers: words of which exactly one comes before it.
        suffixes: the word sequences that may follow the name.
        once: whether there is at most one without a name.
        type: whether `: type` must follow, or may not.
        parameters: whether it may take parameters.
        value: shapes of its value; empty where it takes none. `expression` kinds have a free one.
        expression: whether the value is an expression, lowered to a term.
        refers: whether the value may be a reference to a declaration of the same kind, here or in a module.
        settings: of its block; None where it takes no block.
        passes: whether the block takes any other name with a plain literal.
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
        """The setting of a name."""
        return next((s for s in self.settings or () if s.name == name), None)


_FIELD_SETTINGS = (
    SettingKind("about", (TEXT,), "what the model is told about the field"),
    SettingKind("limit", (amount("tokens", low=1, whole=True),), "the most tokens a value may have"),
    SettingKind("column", (TEXT,), "its name in the data file", unset="the field's own name"),
)

_PYTHON = Form("call", name="python", arguments=(TEXT,))
_AGENT_SETTINGS = (
    SettingKind("tools", (Form("list", items=(_PYTHON,)),), "what the agent may call"),
    SettingKind("turns", (count("turns"),), "the most turns of one rollout"),
)
_REACT = Form("word", words=("react",), block=_AGENT_SETTINGS)
_SANDBOX = Form(
    "word",
    words=("bubblewrap", "docker", "none"),
    block=(
        SettingKind("memory", (amount("bytes", low=1),), "the most memory"),
        SettingKind("time", (TIME,), "the most time of one run"),
        SettingKind("processes", (count(),), "the most processes at once"),
    ),
    passes=True,
)
_CODE_SETTINGS = (
    SettingKind("rounds", (count("rounds"),), "the most rounds of writing and running code"),
    SettingKind("sandbox", (_SANDBOX,), "where the code runs"),
)

ROLLOUT = (
    words("predict", "chain_of_thought"),
    _REACT,
    Form(
        "call",
        name="environment",
        arguments=(TEXT,),
        block=(
            SettingKind("agent", (words("predict", "chain_of_thought"), _REACT), "who acts in the environment"),
            SettingKind("turns", (count("turns"),), "the most turns of one rollout"),
        ),
        passes=True,
    ),
    Form("word", words=("code",), block=_CODE_SETTINGS),
    Form("word", words=("codex",), block=(), passes=True),
    Form("call", name="command", arguments=(TEXT,), many=True, block=(), passes=True),
)

_COMMAND = Form(
    "text",
    block=(
        SettingKind(
            "answer",
            (
                words("stdout"),
                Form("call", name="json", arguments=(TEXT,)),
                Form("call", name="after", arguments=(TEXT,)),
                Form("call", name="match", arguments=(TEXT,)),
                Form("call", name="file", arguments=(TEXT,)),
            ),
            "where the answer stands in what the command gives",
            default="stdout",
        ),
        SettingKind("folder", (TEXT,), "the folder in which it runs", unset="an empty one for each call"),
        SettingKind(
            "environment", (Form("list", items=(ENV,)),), "variables that it is given besides `PATH` and `HOME`"
        ),
    ),
)

DTYPES = ("auto", "half", "float16", "bfloat16", "float", "float32")
_NAMED = Form("block", block=(), passes=True)
_SERVE = (
    SettingKind("model", (TEXT,), "a folder of weights, or a name on the hub", unset="the name behind `hosted_vllm/`"),
    SettingKind("revision", (TEXT,), "the commit or branch of a model on the hub", unset="`main`"),
    SettingKind("tokenizer", (TEXT,), "a folder or a name on the hub", unset="the model's own"),
    SettingKind("chat_template", (TEXT,), "a file with the chat template", unset="the model's own"),
    SettingKind(
        "lora",
        (_NAMED, Form("list", items=(TEXT,))),
        'adapters: `{ name = "folder" }` or `["name=folder"]`; each is a model `hosted_vllm/name`',
    ),
    SettingKind(
        "max_len", (count("tokens"),), "the most tokens of prompt and reply together", unset="what the model allows"
    ),
    SettingKind("dtype", (words(*DTYPES), TEXT), "the type of weights and activations", unset="the model's own"),
    SettingKind("quantization", (TEXT,), "how weights are quantized", unset="what the model's folder says"),
    SettingKind(
        "gpu_share", (number(0, 1),), "the share of each GPU's memory that the server takes", unset="vLLM's own"
    ),
    SettingKind("tensor_parallel", (count(),), "GPUs that share one copy of the model", default=1),
    SettingKind("data_parallel", (count(),), "copies of the model", default=1),
    SettingKind("port", (count(),), "the port on this machine", unset="a free one"),
    SettingKind("python", (TEXT,), "the interpreter that has vLLM", unset="one that is found"),
    SettingKind("keep", (SWITCH,), "whether the server runs on for the next run", default=False),
    SettingKind("timeout", (TIME,), "how long the start may take", default=Fraction(1800)),
    SettingKind("args", (Form("list", items=(TEXT,)),), "further arguments of vLLM's own"),
    SettingKind("env", (_NAMED,), "variables of the server's environment"),
)

MODEL_PARAMETERS = (
    SettingKind("base_url", (TEXT, ENV), "address of the endpoint"),
    SettingKind("key", (ENV,), "the environment variable that holds the key"),
    SettingKind(
        "price",
        (
            Form(
                "block",
                block=(
                    SettingKind("input", (DOLLARS,), "dollars per million tokens that are sent"),
                    SettingKind("output", (DOLLARS,), "dollars per million tokens that come back"),
                    SettingKind("cached", (DOLLARS,), "dollars per million tokens that the provider had cached"),
                    SettingKind(
                        "call", (DOLLARS,), "dollars that one call costs at most, its tokens aside", default=Fraction(0)
                    ),
                ),
            ),
        ),
        "what a million tokens cost, or a call",
        unset="the price list of litellm; nothing for a model on this machine",
    ),
    SettingKind("serve", (Form("word", words=("vllm",), block=_SERVE),), "the server that skillc starts"),
    SettingKind("exec", (_COMMAND,), "the command that answers, as in `mytool --prompt {prompt}`"),
    SettingKind("backend", (_PYTHON,), "the function of your own that answers"),
    SettingKind("temperature", (number(0, 2),), "how much chance there is in a reply", sent=True),
    SettingKind("top_p", (number(0, 1),), "the share of probability that a token is drawn from", sent=True),
    SettingKind("max_tokens", (count("tokens"),), "the most tokens of a reply, as it is sent", sent=True),
    SettingKind("max_reply", (count("tokens"),), "the most tokens of a reply, as they are reserved", default=4096),
    SettingKind("seed", (count(low=0),), "the seed that is sent with each call", sent=True),
    SettingKind("timeout", (TIME,), "how long one attempt of a call may take", default=Fraction(300)),
    SettingKind(
        "down",
        (TIME,),
        "how long its endpoint may be out of reach in mid-run before the run stops",
        default=Fraction(300),
    ),
    SettingKind("concurrency", (count(),), "the most calls in flight at once", unset="as many as the endpoint takes"),
    SettingKind("rpm", (count(),), "the most requests a minute"),
    SettingKind("tpm", (count("tokens"),), "the most tokens a minute, sent and received"),
)

_KINDS = (
    Kind(
        "task",
        ("",),
        "forbidden",
        "what goes in, what comes out, and how one rollout runs",
        once=True,
        settings=(SettingKind("rollout", ROLLOUT, "how one rollout runs", default="predict"),),
    ),
    Kind("input", ("task",), "required", "a field that the model is given", type=True, settings=_FIELD_SETTINGS),
    Kind("output", ("task",), "required", "a field that the model answers", type=True, settings=_FIELD_SETTINGS),
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
            SettingKind("present", (words("advice", "rules"),), "how the target is told to use it", default="rules"),
        ),
    ),
    Kind(
        "section",
        ("skill", ""),
        "required",
        "a part of the skill, which may be trained or not",
        modifiers=("frozen", "trainable", "slow"),
        value=(TEXT,),
        refers=True,
        settings=(
            SettingKind("title", (TEXT,), 'its heading in SKILL.md; "" for none', unset="from the name"),
            SettingKind("limit", (amount("tokens", low=1, whole=True),), "the most tokens it may have"),
        ),
    ),
    Kind(
        "model",
        ("",),
        "required",
        "the model of a role: `target`, `optimizer`, or a judge of any name",
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
            SettingKind("source", (TEXT,), "a file that is split"),
            SettingKind("train", (TEXT,), "the training examples", stages=("rollout", "reflect", "screen")),
            SettingKind("validation", (TEXT,), "the examples that gates are decided on", stages=("baseline", "gate")),
            SettingKind("test", (TEXT,), "the examples of the final test", stages=("final test", "no skill")),
            SettingKind("split", (Form("ratio"),), "train : validation : test", default=(2, 1, 2)),
            SettingKind("group", (FIELD,), "examples that agree in it stay on one side"),
            SettingKind("seed", (count(low=0),), "the seed of the split and of the run", default=0, changeable=True),
        ),
    ),
    Kind("field", ("data",), "required", "a column of the data that gates read", type=True, settings=_FIELD_SETTINGS),
    Kind("metric", ("",), "required", "what is measured on one rollout", parameters=True, expression=True),
    Kind("goal", ("",), "required", "the metric that is optimised; exactly one", expression=True),
    Kind("rubric", ("",), "required", "what a judge judges by", value=(TEXT,), refers=True),
    Kind("optimize", ("",), "optional", "the mechanisms of the loop", once=True, refers=True, settings=OPTIMIZE),
    Kind("budget", ("",), "optional", "caps on what a run may spend", once=True, refers=True, settings=BUDGET),
    Kind(
        "gate",
        ("",),
        "required",
        "what a candidate must prove; all gates must hold",
        suffixes=(("for", "slow"),),
        parameters=True,
        expression=True,
    ),
    Kind(
        "require",
        ("",),
        "required",
        "a condition that is decided once, before the first step",
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
"""Every kind by its word. `language` and `use` have statements of their own."""

_POOL = "it was removed: `method = gepa` grows candidates from a Pareto front and merges them"
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
"""Parameters of models that are passed through and are well known, so that they count as no misspelling."""

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
    "claim": "a written comparison of two means: `candidate.m > incumbent.m`",
    "condition": "a condition on one rollout",
    "text": "a field, or a text in quotes",
    "texts": "a list of texts in quotes",
    "field": "a field that examples can be grouped by",
    "rubric": "a rubric, or a text in quotes",
    "model": "a model's role",
    "skill": "a skill of the program",
}
"""Types of parameters, but for quantities."""
STATES: Mapping[str, str] = {
    "candidate": "the skill that the gate decides on",
    "incumbent": "the skill that the candidate was made from, and would replace",
    "best": "the accepted skill with the highest mean of the goal so far",
    "initial": "the skill as the program has it, before the first step",
}


def default_of(kind: str, *path: str) -> Any:
    """The default of a setting, or of one in the block behind another: `default_of("model", "price", "call")`."""
    settings: Iterable[SettingKind] = KINDS[kind].settings or ()
    for name in path:
        found = next(each for each in settings if each.name == name)
        settings = [each for form in found.forms for each in form.block or ()]
    return found.default


def kinds_in(parent: str) -> Mapping[str, Kind]:
    """The kinds that a block may contain; the empty word is the top of a file."""
    return {kind.word: kind for kind in _KINDS if parent in kind.within}
