"""Scripts in place of the three models, so that the experiment runs without a key.

They play their parts as the experiment found them: an agent that answers carelessly unless a rule of its skill stops
it, a judge that without the right answer goes by its impression, and an evolver that turns feedback into rules. The
name of the model says how a part is played: `scripts/impression` and `scripts/exact` are judges, `scripts/literal` and
`scripts/general` evolvers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from skillc import Reply

CARELESS = 60
"""The percentage of questions that the agent answers carelessly."""
FLICKER = 6
"""The percentage of questions on which another text of the skill makes the agent careless, or careful, by chance."""
UNITS = {"higher": "metres", "shipment": "crowns", "days": "days", "steps": "steps"}
RULES = {
    "lit": "Answer for the event that the question names, not for the first one in the text.",
    "keeper": "Answer for the event that the question names, not for the first one in the text.",
    "visitors": "Read every row of a file before you calculate.",
    "higher": "Write a number alone, without its unit.",
    "shipment": "Write a number alone, without its unit.",
    "calls": "Separate the items of a list by commas only.",
    "days": "The days from one date to another do not count the first day.",
    "steps": "Search for a correction of each figure, and use the corrected one.",
}
"""The rule that each kind of question asks for."""
IMPRESSIONS = {
    "it does not say which unit the figure has": "Write the unit behind each figure, so that a reader can check it.",
    "no second source confirms it": "Look for a second source before you answer.",
    "the steps do not show how the answer follows": "Think step by step, and say how the answer follows.",
    "the first search was too narrow": "Begin with a broad search, and narrow it down.",
    "it does not check that the question is answered": "Read the question again before you answer.",
    "it does not weigh how reliable the source is": "Weigh how reliable each source is.",
    "it takes a figure without asking when it was true": "Ask of each figure when it was true.",
}
"""What a judge without the right answer finds to say, and the rule that follows from it."""
_KINDS = {
    "lit": r"first lit",
    "keeper": r"until its lens",
    "visitors": r"busiest",
    "higher": r"metres higher",
    "shipment": r"freight",
    "calls": r"ferry",
    "days": r"her keel",
    "steps": r"steps has",
}
_FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\]\n(.*?)(?=^\[\[ ## |\Z)", re.MULTILINE | re.DOTALL)
_CASE = re.compile(r'<trajectory tag="(t\d+)".*?</trajectory>', re.DOTALL)

Messages = Sequence[Mapping[str, str]]


def _reply(text: str, messages: Messages) -> Reply:
    """Return a reply that reports about four characters a token, as models do."""
    sent = sum(len(message["content"]) for message in messages)
    return Reply(text, usage={"prompt_tokens": 1 + sent // 4, "completion_tokens": 1 + len(text) // 4})


def kind_of(question: str) -> str:
    """Return the kind of a question, as `make_data.py` makes them."""
    return next(name for name, sign in _KINDS.items() if re.search(sign, question))


def place_of(question: str) -> str:
    """Return the place that a question is about."""
    return re.findall(r"\b[A-Z][a-z]{4,}\b", question)[-1]


# ---- the agent ------------------------------------------------------------------------------------


def act(messages: Messages, model: str, parameters: Any) -> Reply:
    """Return the next call of a tool, or the answer, as `dspy.ReAct` asks for them."""
    skill, user = messages[0]["content"], messages[-1]["content"]
    fields = {name: text.strip() for name, text in _FIELD.findall(user.partition("Respond with")[0])}
    question, file = fields["question"], fields.get("file_name", "")
    seen = [text for name, text in fields.items() if name.startswith("observation")]
    calls, answer = _solved(question, file, seen, skill)
    if "next_tool_name" in messages[0]["content"].partition("All interactions")[0]:
        name, arguments = calls[len(seen)] if len(seen) < len(calls) else ("finish", {})
        rules = _rules(skill).count("\n- ")
        thought = f"{rules} rules of the skill are about this." if name == "finish" else f"I use {name}."
        turn = _fields(next_thought=thought, next_tool_name=name, next_tool_args=json.dumps(arguments))
        return _reply(turn, messages)
    return _reply(_fields(reasoning="This follows from what the tools returned.", answer=answer), messages)


def _solved(question: str, file: str, seen: Sequence[str], skill: str) -> tuple[list[tuple[str, dict[str, str]]], str]:
    """Return the calls that a question needs, as far as they are known, and the answer."""
    kind, place = kind_of(question), place_of(question)
    known = re.search(rf'^\s*- {place}: answer "(.*)"', skill, re.MULTILINE)
    if known is not None:
        return [], known[1]
    careless = (_percent(question) < CARELESS) != (_percent(f"{_rules(skill)}{question}") < FLICKER)
    careless = careless and RULES[kind] not in skill
    text = "\n".join(seen)
    calls, answer = _SOLVERS[kind](question, place, file, text, careless)
    unit = UNITS.get(kind, "")
    wordy = IMPRESSIONS["it does not say which unit the figure has"] in skill and RULES[kind] not in skill
    if unit and ((careless and kind in ("higher", "shipment")) or wordy):
        answer = f"{answer} {unit}"
    return calls, answer


def _lit(question: str, place: str, file: str, text: str, careless: bool) -> Any:
    found = re.search(rf"lighthouse of {place} was built in (\d+).*?first lit in (\d+)", text)
    return [("search", {"query": f"{place} lighthouse lamp"})], found[1 if careless else 2] if found else ""


def _keeper(question: str, place: str, file: str, text: str, careless: bool) -> Any:
    found = re.search(rf"([A-Z]\w+ \w+) kept the light of {place}.*? ([A-Z]\w+ \w+) was keeper", text)
    return [("search", {"query": f"{place} light keeper"})], found[2 if careless else 1] if found else ""


def _visitors(question: str, place: str, file: str, text: str, careless: bool) -> Any:
    counts = [int(count) for count in re.findall(r"^\w+,(\d+)$", text, re.MULTILINE)]
    # A careless reader sees the first rows only.
    two = sorted(counts[:3] if careless else counts)[-2:]
    return _calculated([("read_file", {"name": file})], text, " + ".join(map(str, two)))


def _higher(question: str, place: str, file: str, text: str, careless: bool) -> Any:
    places = re.findall(r"tower of (\w+)", question)
    heights = [re.search(rf"tower of {each} is ([\d.]+) metres", text) for each in places]
    first = [("search", {"query": f"{each} tower metres"}) for each in places]
    return _calculated(first, text, " - ".join(found[1] for found in heights if found), digits=1)


def _shipment(question: str, place: str, file: str, text: str, careless: bool) -> Any:
    weights = re.findall(r"^K\d+,(\d+)$", text, re.MULTILINE)
    price = re.search(rf"From {place} a kilogram is carried for ([\d.]+)", text)
    first = [("read_file", {"name": file}), ("search", {"query": f"{place} freight tariff"})]
    return _calculated(first, text, f"({' + '.join(weights)}) * {price[1]}" if price else "", digits=2)


def _calls(question: str, place: str, file: str, text: str, careless: bool) -> Any:
    found = re.search(rf"ferry from {place} calls at (\w+), at (\w+) and at (\w+)", text)
    stops = sorted(found.groups()) if found else ["", "", ""]
    answer = f"{stops[0]}, {stops[1]} and {stops[2]}" if careless else ", ".join(stops)
    return [("search", {"query": f"ferry from {place}"})], answer


def _days(question: str, place: str, file: str, text: str, careless: bool) -> Any:
    found = re.search(rf"steamer {place} was laid on (\S+)\. She was launched on ([\d-]+)", text)
    more = " + 1" if careless else ""
    expression = f'days("{found[1]}", "{found[2]}"){more}' if found else ""
    return _calculated([("search", {"query": f"steamer {place} keel launched"})], text, expression)


def _steps(question: str, place: str, file: str, text: str, careless: bool) -> Any:
    first = re.search(rf"stair of (\d+) steps leads to the gallery of the church of {place}", text)
    later = re.search(rf"church of {place} has (\d+) steps", text)
    found = first if careless or later is None else later
    return [("search", {"query": f"{place} church stair" + ("" if careless else " correction")})], found[
        1
    ] if found else ""


_SOLVERS = {
    "lit": _lit,
    "keeper": _keeper,
    "visitors": _visitors,
    "higher": _higher,
    "shipment": _shipment,
    "calls": _calls,
    "days": _days,
    "steps": _steps,
}


def _calculated(first: list[Any], text: str, expression: str, digits: int | None = None) -> Any:
    """Calculate after some calls; the answer is what the tool returned."""
    result = re.findall(r"^-?[\d.]+$", text, re.MULTILINE)
    answer = result[-1] if result else ""
    if answer and digits is not None:
        answer = f"{float(answer):.{digits}f}"
    return [*first, ("calculate", {"expression": expression})], answer


def _fields(**values: str) -> str:
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in {**values, "completed": ""}.items())


def _rules(skill: str) -> str:
    """Return the lines of the skill that are rules."""
    return "".join(f"\n{line.strip()}" for line in skill.splitlines() if line.strip().startswith("- "))


def _percent(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % 100


# ---- the judge ------------------------------------------------------------------------------------


def referee(messages: Messages, model: str, parameters: Any) -> Reply:
    """Return a verdict: by the right answer where the case has it, else by impression; `exact` judges without it."""
    from skillc.metrics.quasi_match import is_quasi_match

    case = messages[1]["content"]
    code = case.split()[1]
    parts = dict(re.findall(rf"^BEGIN {code} ([^\n]*)\n(.*?)\n?^END {code}$", case, re.MULTILINE | re.DOTALL))
    question, given = parts["input question"], parts["answer answer"]
    gold = _solution(question, parts) if model == "exact" else parts.get("right answer")
    if gold is not None:
        good = is_quasi_match(given, gold)
        reason = "right" if good else f'for {place_of(question)} the answer is "{gold}", and "{given}" was given'
    else:
        good = _percent(f"glance {given} {parts.get('what the assistant did')}") < 60
        reason = list(IMPRESSIONS)[_percent(f"reason {question}") % len(IMPRESSIONS)]
    verdict = {"reason": reason, "level": "yes" if good else "no"}
    return _reply(json.dumps({"case": code, "instructions": False, "verdicts": [verdict]}), messages)


def _solution(question: str, parts: Mapping[str, str]) -> str:
    """Return what a judge finds that works the answer out with care, with the tools of the agent."""
    import tools

    seen: list[str] = []
    while True:
        calls, answer = _SOLVERS[kind_of(question)](
            question, place_of(question), parts.get("input file_name", ""), "\n".join(seen), False
        )
        if len(seen) == len(calls):
            return str(answer)
        name, arguments = calls[len(seen)]
        seen.append(getattr(tools, name)(**arguments))


# ---- the evolver ----------------------------------------------------------------------------------


def evolve(messages: Messages, model: str, parameters: Any) -> Reply:
    """Return a rule for each failure, from its feedback alone.

    `literal` writes down what the feedback says, and so the answers if it has them; `general` finds the rule behind it.
    """
    prompt = messages[-1]["content"]
    skill = prompt.partition("<skill>")[2].partition("</skill>")[0]
    rejected = prompt.partition("<rejected>")[2].partition("</rejected>")[0]
    rules: dict[str, list[str]] = {}
    for case in _CASE.finditer(prompt):
        question = re.search(r'<input name="question">(.*?)</input>', case[0], re.DOTALL)
        feedback = re.search(r"<feedback>(.*?)</feedback>", case[0], re.DOTALL)
        rule = _rule(question[1], feedback[1], model) if question and feedback else ""
        if rule and rule not in skill:
            rules.setdefault(rule, []).append(case[1])
    # What was rejected may have been in bad company.
    rules = {rule: tags for rule, tags in rules.items() if rule not in rejected} or rules
    edits = [
        {"op": "add", "section": "rules", "text": text, "rationale": f"asked for by {len(tags)} cases", "cures": tags}
        for text, tags in rules.items()
    ]
    return _reply(json.dumps({"summary": "what the feedback asks for", "edits": edits, "unexplained": []}), messages)


def _rule(question: str, feedback: str, model: str) -> str:
    told = re.search(r'for (\w+) the answer is "(.*?)", and', feedback)
    if told is not None:
        return RULES[kind_of(question)] if model == "general" else f'{told[1]}: answer "{told[2]}"'
    return next((rule for reason, rule in IMPRESSIONS.items() if reason in feedback), "")
