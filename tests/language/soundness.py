"""Programs without an error, made at random: the fields first, then what may be said about them.

Every choice keeps the rules of the language, so that nothing is thrown away: metrics lie in 0 .. 1 and are no
constants, gates compare what they cannot know beforehand, settings stay within their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from skillc.language.forms import Form, SettingKind
from skillc.language.kinds import KINDS

_NAMES = (
    *("ticket", "question", "answer", "team", "reply", "summary", "urgent", "product", "customer", "worth", "country"),
    *(
        "größe",
        "данные",
        "数据",
        "λόγος",
        "candidate_2",
        "goal",
        "metric",
        "batch_no",
        "input",
        "section",
        "run",
        "tokens",
    ),
)
_METRICS = (
    "correct",
    "right",
    "brief",
    "polite",
    "overlap_words",
    "länge",
    "точность",
    "budget",
    "share",
    "m_1",
    "m_2",
)
_GATES = ("better", "safe", "compact", "steady", "honest", "fair", "sûr", "gate", "for_all", "g_1")
_PERCENT = ("1%", "2.5%", "5 %", "30%", "0.4", "75%", "1 / 3")
_PROSE = (
    '"Route a ticket."',
    '"Say \\"yes\\", or \\u{2026}\\n"',
    '"""\n    You route.\n      - well\n  """',
    '"""One line."""',
)


@dataclass(frozen=True)
class _Field:
    name: str
    type: str
    role: str

    @property
    def words(self) -> bool:
        return self.type.startswith(("text", '"')) and "none" not in self.type

    @property
    def groups(self) -> bool:
        return (
            self.role != "output"
            and not self.type.startswith(("json", "list", "file", "image"))
            and ("none" not in self.type)
        )

    @property
    def labels(self) -> list[str]:
        return [part.strip() for part in self.type.split("|")] if self.type.startswith('"') else []


@st.composite
def _fields(draw: st.DrawFn) -> list[_Field]:
    names = iter(draw(st.permutations(_NAMES)))
    plain = st.sampled_from(["text", "bool", "number", "integer", '"a" | "b" | "größer, mehr"', "text | none", "json"])
    found = [_Field(next(names), draw(plain | st.just("list[text]")), "input") for _ in range(draw(st.integers(1, 3)))]
    output = st.sampled_from(["text", '"billing" | "shipping"', '"yes" | "no" | "can\'t say"'])
    found += [_Field(next(names), draw(output), "output") for _ in range(draw(st.integers(1, 2)))]
    found += [_Field(next(names), draw(plain), "field") for _ in range(draw(st.integers(0, 3)))]
    return found


# ---- metrics and gates ----------------------------------------------------------------------------


@st.composite
def _measure(draw: st.DrawFn, fields: list[_Field], metrics: list[str], depth: int = 2) -> str:
    """A number in 0 .. 1 that is known of no rollout beforehand."""
    outputs = [field for field in fields if field.role == "output"]
    if depth and draw(st.booleans()):
        a = draw(_measure(fields, metrics, depth - 1))
        b = draw(_measure(fields, metrics, depth - 1))
        share = draw(st.sampled_from([("0.9", "0.1"), ("50%", "50%"), ("1 / 4", "3 / 4"), ("0.125", "0.875")]))
        return draw(
            st.sampled_from(
                [
                    f"({share[0]} * {a} + {share[1]} * {b})",
                    f"(1 - {a})",
                    f"{a} * {b}",
                    f"min({a}, {b}, 0.9)",
                    f"max({a}, {b})",
                    f"clamp({a} + {b}, 0, 1)",
                    f"clamp(+{a} - {b}, 0%, 100%)",
                    f"(({a} + {b}) / 2)",
                    f"({a} > {draw(st.sampled_from(['50%', '0.25']))} or {b} <= 10%)",
                    f"(not {a} >= 1 / 2)",
                ]
            )
        )
    output = draw(st.sampled_from(outputs))
    simple = [f"exact_match({output.name})", *metrics]
    if output.labels:
        simple += [f"one_of({output.name})", f"({output.name} == {draw(st.sampled_from(output.labels))})"]
    else:
        simple += [f"f1({output.name})", f"contains({output.name})", f"numeric({output.name}, tolerance = 5%)"]
        simple += [f'one_of({output.name}, options = ["a", "b"])', f'json_fields({output.name}, fields = ["x"])']
    simple += [f"clamp(1 - tokens({field.name}) / 20 tokens, 0, 1)" for field in fields if field.words]
    simple += [field.name for field in fields if field.type == "bool" and field.role == "field"]
    simple += ['python("checks:polite")', 'python("checks.all:count", low = 0, high = 10) / 10']
    return draw(st.sampled_from(simple))


@st.composite
def _condition(draw: st.DrawFn, fields: list[_Field], metrics: list[str], depth: int = 1) -> str:
    """What a gate may demand of a candidate."""
    metric = draw(st.sampled_from(metrics))
    percent = draw(st.sampled_from(_PERCENT))
    groups = [field.name for field in fields if field.groups]
    by = f", by = {draw(st.sampled_from(groups))}" if groups and draw(st.booleans()) else ""
    found = [
        f"candidate.{metric} > incumbent.{metric}",
        f"candidate.{metric} >= incumbent.{metric} + {percent}",
        f"candidate.{metric} >= best.{metric} - {percent}",
        f"candidate.{metric} > 1.02 * initial.{metric}",
        f"regressed({metric}{by}) <= {percent}",
        f"improved({metric}, on = batch) > 0",
        "tokens(candidate) <= 2k tokens",
        "tokens(candidate) < tokens(incumbent)",
        f"change(candidate) <= {percent}",
        f"overlap(candidate) <= {percent}",
        "cost(candidate) <= 1.1 * cost(incumbent)",
        "cost(candidate) < $0.02",
        f"confidence(candidate.{metric} > incumbent.{metric}) >= {percent}",
        f"e_value(candidate.{metric} > incumbent.{metric}, over = run) >= 20",
        f"gates.strict({metric}, more_than = 1%)",
        f"ours({metric})",
        f"ours({metric}, most = {percent})",
    ]
    if by:
        found.append(f"worst(candidate.{metric}{by}) >= {percent}")
    chosen = draw(st.sampled_from(found))
    if depth and draw(st.integers(0, 3)) == 0:
        other = draw(_condition(fields, metrics, depth - 1))
        return draw(
            st.sampled_from([f"{chosen} and {other}", f"{chosen}\n  or {other}", f"not ({chosen}) or ({other})"])
        )
    return chosen


# ---- settings within their bounds -----------------------------------------------------------------


def _number(form: Form) -> st.SearchStrategy[str]:
    low = max(form.low or 0, 1 if form.whole else 0)
    if form.high == 1:
        return st.sampled_from(["0", "1", "0.25", "50%", "1e-2"])
    if form.unit == "$":
        return st.sampled_from(["$3", "$0.50", "$1_000"])
    if form.unit == "s":
        return st.sampled_from(["90 min", "1.5 h", "30 s", "1_500 ms"])
    whole = st.integers(low, low + 40).map(str) | st.sampled_from(["1_000", "2k"])
    if form.high is not None:
        return st.integers(low, form.high).map(str)
    if form.bare and form.unit:
        return whole | whole.map(lambda digits: f"{digits} {form.unit}")
    if form.unit == "bytes":
        return st.sampled_from(["512 MB", "1 GB", "9 bytes"])
    return whole.map(lambda digits: f"{digits} {form.unit}".strip())


def _value(form: Form) -> st.SearchStrategy[str]:
    match form.kind:
        case "number":
            return _number(form)
        case "word":
            return st.sampled_from(form.words)
        case "switch":
            return st.sampled_from(["on", "off"])
        case "list":
            return st.lists(_value(form.items[0]), min_size=1, max_size=2).map(lambda items: f"[{', '.join(items)}]")
        case "call" if form.name in ("linear", "cosine"):
            return st.sampled_from([f"{form.name}(4, 2)", f"{form.name}(3, 3)"])
        case "call":
            said = '"lib:act"' if form.name == "python" else '"SOME_NAME"'
            inner = [said if each.kind == "text" else "3" for each in form.arguments]
            return st.just(f"{form.name}({', '.join(inner)})")
        case _:
            return st.sampled_from(['"a"', '"some/path"', '"größer {x}"'])


@st.composite
def _settings(draw: st.DrawFn, settings: tuple[SettingKind, ...], *, least: int = 0, most: int = 4) -> list[str]:
    names = draw(st.lists(st.sampled_from(settings), min_size=least, max_size=most, unique_by=lambda each: each.name))
    found = []
    for setting in names:
        form = draw(st.sampled_from(setting.forms))
        if form.kind == "block":
            inner = draw(_settings(form.block)) if form.block else ['one = "a"', "two = 2"]
            found.append(f"{setting.name} {{ {'; '.join(inner)} }}")
            continue
        block = ""
        if form.block and draw(st.booleans()):
            block = f" {{ {'; '.join(draw(_settings(form.block, most=2)))} }}"
        found.append(f"{setting.name} = {draw(_value(form))}{block}")
    return found


def _only(kind: str, *, but: tuple[str, ...] = ()) -> tuple[SettingKind, ...]:
    return tuple(setting for setting in KINDS[kind].settings or () if setting.name not in but)


@st.composite
def _models(draw: st.DrawFn) -> list[str]:
    sent = _only("model", but=("exec", "serve", "backend"))
    settings = draw(_settings(sent))
    target = draw(
        st.sampled_from(
            [
                'model target = "rulebook/v1"',
                f'model target = "openai/gpt-5.5-mini" {{ {"; ".join(settings)} }}',
                'model target = env("TARGET_MODEL") { temperature = 0.5; top_k = 20 }',
                'model target = "hosted_vllm/Qwen/Qwen3.5-4B" { serve = vllm { max_len = 8192; dtype = auto } }',
                'model target = "exec/tool" { exec = "tool --prompt {prompt}" { answer = after("Answer:") } }',
                'model target = "mine/large" { backend = python("lib:answer") }',
            ]
        )
    )
    own = [] if "exec = " in target else ["target { max_tokens = 900 tokens }"]
    other = draw(st.sampled_from(["target", '"openai/gpt-5.5"', *own]))
    found = [target, f"model optimizer = {other}"]
    if draw(st.booleans()):
        found.append('model referee = "anthropic/claude-opus-5" { temperature = 0 }')
    return found


@st.composite
def _data(draw: st.DrawFn, fields: list[_Field]) -> str:
    column = ' { column = "Ship To" }'
    lines = [
        f"field {field.name}: {field.type}{draw(st.sampled_from(['', column]))}"
        for field in fields
        if field.role == "field"
    ]
    if draw(st.booleans()):
        lines.append('source = "examples.jsonl"')
        split = st.sampled_from(["2 : 1 : 2", "3 : 1", "80 examples : 40 examples : 0 examples", "0.5 : 0.25 : 0.25"])
        lines += [f"split = {draw(split)}"] if draw(st.booleans()) else []
    else:
        lines += ['train = "a.csv"', 'validation = "b.csv"', *draw(st.sampled_from([[], ['test = "c.csv"']]))]
    groups = [field.name for field in fields if field.groups]
    if groups and draw(st.booleans()):
        lines.append(f"group = {draw(st.sampled_from(groups))}")
    lines += draw(st.sampled_from([[], ["seed = 7"]]))
    return "data {\n" + "".join(f"  {line}\n" for line in draw(st.permutations(lines))) + "}"


_PLACES = ("", " { limit = 800 tokens }", " {}", ' { file = "references/rules.md"; about = "First" }')


@st.composite
def _skill(draw: st.DrawFn) -> str:
    about = draw(st.sampled_from(["about", "trainable about", "frozen about"]))
    lines = [f'{about} = "Route a ticket. Use it for each {draw(st.sampled_from(["new", "größeren"]))} one."']
    lines += draw(_settings(_only("skill", but=("about", "load", "frontmatter", "files")), most=2))
    lines.append(f"trainable section rules{draw(st.sampled_from(_PLACES))}")
    if draw(st.booleans()):
        lines.append(f"frozen section role = {draw(st.sampled_from(_PROSE))}")
    if draw(st.booleans()):
        lines.append(f"slow section guidance = {draw(st.sampled_from(_PROSE))} {{ limit = 1_000 tokens }}")
    return "skill route_tickets {\n" + "".join(f"  {line}\n" for line in lines) + "}"


# ---- the program ----------------------------------------------------------------------------------


@st.composite
def _task(draw: st.DrawFn, fields: list[_Field]) -> str:
    lines = []
    for field in fields:
        if field.role != "field":
            about = draw(st.sampled_from(["", "", ' { about = "as it was written" }']))
            lines.append(f"{field.role} {field.name}: {field.type}{about}")
    if draw(st.booleans()):
        lines.append(f"rollout = {draw(st.sampled_from(['predict', 'chain_of_thought']))}")
    return "task {\n" + "".join(f"  {line}\n" for line in lines) + "}"


@st.composite
def _measured(draw: st.DrawFn, fields: list[_Field]) -> list[str]:
    names = draw(st.lists(st.sampled_from(_METRICS), min_size=1, max_size=4, unique=True))
    found, known = [], []
    for name in names[:-1]:
        found.append(f"metric {name} = {draw(_measure(fields, known))}")
        known.append(name)
    found.append(f"goal {names[-1]} = {draw(_measure(fields, known))}")
    known.append(names[-1])
    for i, name in enumerate(draw(st.lists(st.sampled_from(_GATES), min_size=1, max_size=3, unique=True))):
        suffix = " for slow" if i and draw(st.booleans()) else ""
        found.append(f"gate {name}{suffix} = {draw(_condition(fields, known))}")
    if draw(st.booleans()):
        found.append(f"require sane = initial.{draw(st.sampled_from(known))} >= {draw(st.sampled_from(_PERCENT))}")
    return found


@st.composite
def sound_programs(draw: st.DrawFn) -> str:
    """Programs that `check` finds no error in, and that have a plan."""
    fields = draw(_fields())
    caps = draw(_settings(_only("budget"), most=3))
    found = [
        "use std.gates",
        "gate ours(m: metric, most: share = 5%) = candidate.m > incumbent.m and regressed(m) <= most",
        draw(_task(fields)),
        draw(_skill()),
        *draw(_models()),
        draw(_data(fields)),
        *draw(_measured(fields)),
        "budget {\n" + "".join(f"  {cap}\n" for cap in ["epochs = 4", *(c for c in caps if "epochs" not in c)]) + "}",
    ]
    if draw(st.booleans()):
        settings = draw(_settings(_only("optimize")))
        found.append(f"optimize {{ {'; '.join(settings)} }}")
    if draw(st.booleans()):
        found.append('rubric solves = """\n  5  it is solved\n  1  it is not\n"""')
    return "\n\n".join(["language 1", *draw(st.permutations(found))]) + "\n"
