"""Signals of whether a session worked: commands, tests, undone changes, the user's next words.

Each signal reads a session without a model and returns `worked`, `failed` or, if the evidence is contradictory,
`unclear`. A session without evidence gets no label. Certainties were measured on made-up sessions
(`tests/sessions/signal_cases.py`); `skillc sessions agreement` replaces them with rates measured against a person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from skillc.dataclass import dataclass
from skillc.sessions.labels import Label, Outcome
from skillc.sessions.session import Session
from skillc.trajectories.trajectory import FileChange, Message, Observation, ToolCall

CERTAINTY: Mapping[tuple[str, Outcome], float] = MappingProxyType(
    {
        ("tests", "worked"): 0.78,
        ("tests", "failed"): 0.86,
        ("exit_status", "worked"): 0.57,
        ("exit_status", "failed"): 0.8,
        ("changes", "worked"): 0.6,
        ("changes", "failed"): 0.75,
        ("next_words", "worked"): 0.8,
        ("next_words", "failed"): 0.9,
        ("marks", "worked"): 0.6,
        ("marks", "failed"): 0.75,
        ("ending", "failed"): 0.75,
    }
)
"""The certainty of a signal and an outcome until a person's labels measure it: (right + 1) / (all + 2), Laplace's
estimate, over the held-out half of 90 made-up sessions. Few of them have each signal, so the figures are rough."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Outcome of one signal, with a short reason."""

    outcome: Outcome
    note: str


def signals_of(session: Session, skill: str = "") -> list[Label]:
    """Return a label of each signal that finds something in a session."""
    found = []
    for name, read in SIGNALS.items():
        reading = read(session)
        if reading is not None:
            certainty = CERTAINTY.get((name, reading.outcome), 0.5)
            note = " ".join(reading.note.split())[:200]
            found.append(Label(session.key, skill, f"signal:{name}", reading.outcome, certainty, note))
    return found


# ---- commands --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the agent ran.

    Attributes:
        at: number of its call among the session's events.
        status: exit status; None if the source does not record it.
        failed: whether its status is not 0, or the source calls it an error.
    """

    at: int
    text: str
    output: str
    status: int | None
    failed: bool


_SHELLS = frozenset(
    {"bash", "shell", "exec", "exec_command", "local_shell", "local_shell_call", "terminal", "run_command", "execute"}
)
_STATUS = re.compile(r"(?:exit(?:ed with)? (?:code|status)|\"exit_code\")\W{0,3}(-?\d+)", re.IGNORECASE)


def commands_of(session: Session) -> list[Command]:
    """Return the commands of a session that have a result, in order; calls made together get results in order."""
    waiting: list[tuple[int, ToolCall]] = []
    found = []
    for at, event in enumerate(session.events):
        if isinstance(event.step, ToolCall):
            waiting.append((at, event.step))
        elif isinstance(event.step, Observation) and waiting:
            start, call = waiting.pop(0)
            text = _command_text(call)
            if text:
                output = event.step.text
                match = _STATUS.search(output[:400]) or _STATUS.search(output[-200:])
                status = int(match[1]) if match else None
                failed = event.step.failed or status not in (0, None)
                found.append(Command(start, text, output, status, failed))
        elif isinstance(event.step, Message):
            waiting.clear()
    return found


def _command_text(call: ToolCall) -> str:
    if (call.name or call.tool).rpartition(".")[2].casefold() not in _SHELLS:
        return ""
    value = call.arguments.get("command", call.arguments.get("cmd", ""))
    words = [str(each) for each in value] if isinstance(value, list) else [str(value)]
    return words[-1] if words[:1] in (["bash"], ["sh"], ["/bin/bash"], ["zsh"]) else " ".join(words)


# Commands that only read: their success is no success of the session, and status 1 of some means "nothing found".
_LOOKS = re.compile(
    r"^\s*(?:\w+=\S+\s+)*(?:sudo\s+)?(?:ls|cat|head|tail|less|grep|egrep|rg|ag|find|fd|pwd|cd|echo|printf|which|type|wc|"
    r"diff|cmp|test|\[|\[\[|tree|file|stat|du|df|ps|pgrep|env|date|sleep|jq|sed -n|awk|sort|uniq|man|whoami|true|false|"
    r"git (?:status|log|diff|show|branch|grep|blame|remote|rev-parse|ls-files|fetch))\b|--(?:help|version)\b"
)
_TEST_COMMAND = re.compile(
    r"\b(?:py\.?test|python3? -m unittest|manage\.py test|tox|nox|cargo (?:nextest|test)|go test|"
    r"(?:npm|yarn|pnpm|bun|deno)(?: run)? test|npx (?:jest|vitest|mocha)|jest|vitest|mocha|make (?:test|check)|"
    r"rspec|mvn\b.*\b(?:test|verify)|gradlew? .*test|dotnet test|ctest|phpunit|mix test|swift test)\b"
)
_JOINS = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")


def exit_status(session: Session) -> Reading | None:
    """Read the last state of the commands that do something; tests, commits and undoing are other signals.

    A command that failed and later succeeded counts as succeeded. A failure of something else before the last
    success is a contradiction.
    """
    last: dict[str, Command] = {}
    for command in commands_of(session):
        parts = [part for part in _JOINS.split(command.text) if part and not _LOOKS.search(part.split("|")[0])]
        if parts and not any(each.search(command.text) for each in (_TEST_COMMAND, _UNDO, _COMMIT)):
            doing = " ".join(parts[-1].split())
            last.pop(doing, None)
            last[doing] = command
    if not last:
        return None
    ended = list(last.values())[-1]
    said = f"status {ended.status}" if ended.status is not None else "an error" if ended.failed else "success"
    note = f"`{ended.text[:80]}` ended with {said}"
    if ended.failed:
        return Reading("failed", note)
    before = [name for name, each in last.items() if each.failed and name.split()[0] == ended.text.split()[0]]
    if before:
        return Reading("unclear", f"{note}, `{before[-1][:80]}` failed before")
    return Reading("worked", note)


# ---- tests -----------------------------------------------------------------------------------------


def _sum(pattern: str, text: str) -> int | None:
    found = re.findall(pattern, text, re.MULTILINE)
    return sum(map(int, found)) if found else None


def summary_of(output: str) -> tuple[int, int] | None:
    """Return how many tests passed and failed by the summary in an output; None without a summary.

    Reads pytest, unittest, cargo, go, jest, vitest, mocha, rspec, Maven, ctest and dotnet.
    """
    output = re.sub(r"\x1b\[[0-9;]*m", "", output)
    line = re.findall(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+) in [\d.]+\s?s", output, re.MULTILINE)
    if line:
        failed = sum(_sum(rf"(\d+) {word}", line[-1]) or 0 for word in ("failed", "errors?"))
        return _sum(r"(\d+) passed", line[-1]) or 0, failed
    ran = _sum(r"^Ran (\d+) tests? in", output)
    if ran is not None:
        failed = _sum(r"(?:failures|errors)=(\d+)", output) or 0
        return ran - failed, failed
    if "test result:" in output:
        return _sum(r"(\d+) passed;", output) or 0, _sum(r"(\d+) failed;", output) or 0
    if re.search(r"^Tests:? +\S*.*(?:passed|failed|total)", output, re.MULTILINE):
        line = re.findall(r"^Tests:? +(.*)$", output, re.MULTILINE)
        return _sum(r"(\d+) passed", line[-1]) or 0, _sum(r"(\d+) failed", line[-1]) or 0
    maven = re.findall(r"^(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+)", output, re.MULTILINE)
    if maven:
        ran, *bad = map(int, maven[-1])
        return ran - sum(bad), sum(bad)
    for passing, failing in (
        (r"^\s*(\d+) passing", r"^\s*(\d+) failing"),
        (r"^(\d+) examples?,", r"^\d+ examples?, (\d+) failure"),
        (r"Passed:\s+(\d+)", r"Failed:\s+(\d+)"),
    ):
        good, bad_ = _sum(passing, output), _sum(failing, output) or 0
        if good is not None:
            return (good - bad_ if "example" in passing else good), bad_
    ok, broken = len(re.findall(r"^(?:ok\s+\S+\s|--- PASS)", output, re.M)), len(re.findall(r"^--- FAIL", output, re.M))
    broken = broken or len(re.findall(r"^FAIL\s+\S+\s", output, re.M))
    return (ok, broken) if ok or broken else None


_WANTS_FAILURE = re.compile(
    r"\b(?:failing|red) tests?\b|\btests? (?:that|which) fails?\b|\bwrite (?:only )?the tests? first\b|"
    r"\b(?:should|must|still) fail\b|\breproduc|\btdd\b|\bdon'?t fix\b|\bxfail\b",
    re.IGNORECASE,
)
_EDITS = frozenset(
    {"edit", "write", "multiedit", "notebookedit", "apply_patch", "str_replace_editor", "create_file", "patch"}
)


def tests(session: Session) -> Reading | None:
    """Read the last run of tests. `unclear` if the user wants a test that fails, or files were edited after it."""
    runs = [each for each in commands_of(session) if _TEST_COMMAND.search(each.text)]
    if not runs:
        return None
    last = runs[-1]
    counts = summary_of(last.output)
    if counts is None and last.status is None and not last.failed and "|" in last.text:
        return None
    passed, failed = counts or (0, 0)
    if counts == (0, 0) or re.search(r"no tests (?:ran|to run|found)", last.output, re.IGNORECASE):
        return None
    bad = failed > 0 or (last.failed and (counts is None or not failed))
    note = f"last run of tests: {passed:,} passed, {failed:,} failed" if counts else f"`{last.text[:80]}`"
    note += "" if counts else " failed" if bad else " succeeded"
    asked = " ".join(event.step.text for event in session.by("user") if isinstance(event.step, Message))
    if bad and _WANTS_FAILURE.search(asked):
        return Reading("unclear", f"{note}, and a failing test is asked for")
    later = [at for at, _ in _edits(session) if at > last.at]
    if later:
        return Reading("unclear", f"{note}, and files were edited after it")
    wider = [each for each in runs if each.text != last.text and (summary_of(each.output) or (0, 0))[1] > failed]
    if not bad and wider and sum(summary_of(wider[-1].output) or (0, 0)) > passed:
        return Reading("unclear", f"{note}, fewer than the earlier run that failed")
    return Reading("failed" if bad else "worked", note)


# ---- changes ---------------------------------------------------------------------------------------

_UNDO = re.compile(
    r"\bgit (?:checkout (?:--|HEAD|\.)|restore(?! --staged)|revert|reset --hard|clean -\w*f|"
    r"stash(?! (?:pop|apply|list)))"
)
_COMMIT = re.compile(r"\bgit (?:[^|;&]*\s)?(?:commit|push)\b|\bgh pr (?:create|merge)\b")
_REJECTED = re.compile(
    r"user (?:doesn't want|does not want|rejected|declined|denied|refused)|rejected by (?:the )?user|"
    r"tool use was rejected|permission (?:was )?denied by (?:the )?user",
    re.IGNORECASE,
)
_ASKS_UNDO = re.compile(
    r"^\W*(?:please |ok,? |no,? )?(?:undo|revert|roll ?back|put (?:it|that|everything) back|discard|"
    r"mach das (?:rückgängig|wieder weg)|annule|deshaz|deshacer)\b",
    re.IGNORECASE,
)


def _edits(session: Session) -> Iterator[tuple[int, bool]]:
    """Yield the number of the event of each edit, and whether the user rejected it."""
    waiting: list[tuple[int, bool]] = []
    for at, event in enumerate(session.events):
        step = event.step
        if isinstance(step, FileChange):
            yield at, False
        elif isinstance(step, ToolCall):
            waiting.append((at, (step.name or step.tool).casefold() in _EDITS))
        elif isinstance(step, Observation) and waiting:
            start, edits = waiting.pop(0)
            if edits and _REJECTED.search(step.text):
                yield start, True
            elif edits and not step.failed:
                yield start, False
        elif isinstance(step, Message):
            waiting.clear()


def changes(session: Session) -> Reading | None:
    """Read what became of the agent's edits: committed, undone by git or at the user's word, or rejected."""
    marks: list[tuple[int, str]] = [(at, "rejected" if no else "edited") for at, no in _edits(session)]
    for command in commands_of(session):
        if command.failed:
            continue
        if _UNDO.search(command.text):
            marks.append((command.at, "undone by git"))
        elif _COMMIT.search(command.text):
            marks.append((command.at, "committed"))
    for at, event in enumerate(session.events):
        step = event.step
        if isinstance(step, Message) and step.role == "user" and not event.automatic and _ASKS_UNDO.search(step.text):
            marks.append((at, "undone at the user's word"))
    names = [name for _, name in sorted(marks)]
    asked = [event.step.text for event in session.by("user") if isinstance(event.step, Message)]
    if not names or not {"edited", "rejected", "committed"} & set(names) or (asked and _ASKS_UNDO.search(asked[0])):
        return None
    undone = [name for name in names if name not in ("edited", "committed")]
    if names[-1] in ("committed", "edited") and undone:
        return Reading("unclear", f"a change was {undone[-1]}, then others were made")
    if undone:
        return Reading("failed", f"the last change was {undone[-1]}")
    return Reading("worked", "the last change was committed") if names[-1] == "committed" else None


# ---- the user's next words -------------------------------------------------------------------------

_GOOD = re.compile(
    r"\b(?:thanks?|thank you|thx|cheers|perfect|excellent|awesome|great|nice|lovely|brilliant|lgtm|"
    r"looks? (?:good|right|great)|(?:it|that|this|everything|all)(?: now)? works|"
    r"works (?:now|fine|great|perfectly|well)|"
    r"exactly what|that(?:'s| is) (?:it|right|correct)|well done|good job|ship it|you fixed it|"
    r"danke\w*|super|klappt|passt|prima|funktioniert(?: jetzt)?|merci|parfait|ça marche|gracias|perfecto|"
    r"funciona(?: bien)?|"
    r"obrigad[oa]|grazie|perfetto)\b|👍|🎉|ありがと|谢谢|完美",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"^\W*(?:no\b(?!,? (?:problem|worries|more|need|thanks|further|rush|that'?s (?:all|it|fine|great)))|nope\b|wrong\b|"
    r"nein\b|falsch\b|stop\b)|"
    r"\b(?:that(?:'s| is)|this is|it(?:'s| is)|still) (?:all |completely |just |totally )?"
    r"(?:not (?!bad|a problem|urgent)|wrong|broken|incorrect|fail|crash|worse|the same (?:error|problem|bug))|"
    r"\b(?:does|did|do|is|was|has|would)(?:n'?t| not) (?:work|help|fix|compile|build|what i|run|do what)|"
    r"\bnot what i\b|\bstill (?:fails|crashes|see|get|getting|doesn'?t|not)|"
    r"\b(?:you|it|now it|that) (?:broke|breaks)\b|"
    r"\bnow (?:it'?s|it is|everything is|the \w+ is) (?:broken|worse)|"
    r"\byou (?:forgot|missed|ignored|deleted|misread)\b|"
    r"\bi (?:said|asked for|told you|meant)\b|\btry again\b|\bfor nothing\b|\buseless\b|\bmakes no sense\b|"
    r"\b(?:now|still) (?:fails|crashes|throws)\b|"
    r"\b(?:geht|funktioniert|klappt|stimmt) (?:immer noch |noch |so )?nicht\b|\bimmer noch (?:falsch|kaputt)|"
    r"\bça ne marche pas|\bne fonctionne pas|\bc'est faux|\bno funciona|\bsigue fallando|\best[áa] mal\b|"
    r"\bnon funziona|\bnão funciona|不对|不行|違います",
    re.IGNORECASE,
)
_TURNS = re.compile(r"\b(?:but|however|except|although|aber|mais|pero|just one thing)\b", re.IGNORECASE)
_NOT_BAD = re.compile(
    r"\bnothing (?:is )?(?:wrong|broken)|\bnot (?:bad|wrong)\b|\bno longer (?:fails|crashes|broken)", re.I
)
_ASKED = re.compile(r"\?[\W_]*$")
_WORD = re.compile(r"\w+")
_SAME_WORDS = 0.8


def next_words(session: Session) -> Reading | None:
    """Read the user's reaction to the agent's answers: approval, objection, or the same request again.

    The last message with either counts. An objection after which the user goes on with something else is
    `unclear`, as is approval with a `but`; `no` that answers a question of the agent is not an objection.
    """
    requests: list[set[str]] = []
    readings: list[tuple[int, Outcome, str]] = []
    answered, question, turn = False, False, 0
    for event in session.events:
        step = event.step
        if isinstance(step, Message) and step.role == "user":
            if event.automatic:
                continue
            turn += 1
            words = set(_WORD.findall(step.text.casefold()))
            said = _said(step.text, answers=question) if answered else None
            if answered and len(words) >= 4 and any(_alike(words, each) for each in requests):
                said = ("failed", "the user asks the same again")
            if said is not None:
                readings.append((turn, *said))
            requests.append(words)
            question = False
        elif isinstance(step, Message):
            answered, question = True, bool(_ASKED.search(step.text.strip()))
        elif isinstance(step, ToolCall):
            answered = True
    if not readings:
        return None
    at, outcome, note = readings[-1]
    if outcome == "failed" and at < turn:
        return Reading("unclear", f"{note}, and the user goes on with something else")
    return Reading(outcome, note)


def _said(text: str, *, answers: bool) -> tuple[Outcome, str] | None:
    """Return the user's verdict on the work before a message; with `answers`, it replies to a question of the agent."""
    shown = f"the user says `{' '.join(text.split())[:80]}`"
    # Pasted text, such as a log, is not the user's own words.
    own = re.sub(r"```.*?```|^>.*$", " ", text, flags=re.DOTALL | re.MULTILINE)[:600]
    own = _NOT_BAD.sub(" ", own.replace("’", "'"))
    if answers:
        own = re.sub(r"^\W*(?:no|nope|nein|non|stop)\b", " ", own, flags=re.IGNORECASE)
    if _BAD.search(own):
        return "failed", shown
    good = _GOOD.search(own)
    if good is None:
        return None
    # `Great, next …` and `thanks in advance` open a request; approval of some length with a turn is none.
    if re.search(r"\bin advance\b|\bwould be (?:great|nice|perfect|awesome)\b|\bnice to have\b", own, re.IGNORECASE):
        return None
    return ("unclear", shown) if _TURNS.search(own[good.end() :]) else ("worked", shown)


def _alike(one: set[str], other: set[str]) -> bool:
    return len(one & other) >= _SAME_WORDS * max(len(one), len(other))


# ---- marks and the end -----------------------------------------------------------------------------

_GOOD_VALUES = frozenset({"good", "positive", "pass", "passed", "correct", "yes", "true", "up", "thumbs_up", "success"})
_BAD_VALUES = frozenset(
    {"bad", "negative", "fail", "failed", "incorrect", "wrong", "no", "false", "down", "thumbs_down"}
)
_OF_QUALITY = re.compile(
    r"thumb|feedback|score|rating|quality|correct|success|helpful|accura|satisf|resolved|solved|pass|right|good|relevan",
    re.IGNORECASE,
)
_OF_FAULTS = re.compile(r"error|incorrect|hallucinat|toxic|fail|bad|wrong|harm|bias|latency|cost|token|length", re.I)


def marks(session: Session) -> Reading | None:
    """Read the scores that the recording tool keeps, of people and evaluators; those that differ are `unclear`.

    Of a number from 0 to 1 (or -1), 0.7 and more is `worked`, 0.3 and less `failed`. Marks of other things than
    quality, such as latency or toxicity, and numbers of another scale are ignored.
    """
    said: dict[Outcome, str] = {}
    for mark in session.marks:
        if not _OF_QUALITY.search(mark.name) or _OF_FAULTS.search(mark.name):
            continue
        value = mark.value
        if isinstance(value, str):
            word = value.strip().casefold().replace(" ", "_")
            number = 1.0 if word in _GOOD_VALUES else 0.0 if word in _BAD_VALUES else None
        else:
            number = float(value) if -1 <= float(value) <= 1 else None
        if number is not None:
            outcome: Outcome = "worked" if number >= 0.7 else "failed" if number <= 0.3 else "unclear"
            said.setdefault(outcome, f"`{mark.name}` is {mark.value}")
    if not said:
        return None
    note = ", ".join(said.values())
    return Reading(next(iter(said)), note) if len(said) == 1 else Reading("unclear", note)


_GAVE_UP = re.compile(
    r"\b(?:i (?:was|am|'m) (?:not able|unable)|i (?:could ?n[o']t|can ?not|can't|was ?n[o']t able to) (?!see (?:any|a) "
    r"(?:problem|issue))|unfortunately|i give up|did not succeed|still fail(?:s|ing)|without success|leider)",
    re.IGNORECASE,
)


def ending(session: Session) -> Reading | None:
    """Read how the session ended: broken off, or with an agent that says that it could not do it.

    Agents end most sessions that failed as if they had worked (16 of 32 in the made set), so no end means `worked`.
    """
    if session.end in ("failed", "interrupted"):
        return Reading("failed", "it ended in an error" if session.end == "failed" else "the user interrupted it")
    said = [event.step.text for event in session.by("assistant") if isinstance(event.step, Message)]
    if not said:
        return None
    last = said[-1]
    if _GAVE_UP.search(last[:600].replace("’", "'")):
        return Reading("failed", f"the agent's last message: `{' '.join(last.split())[:80]}`")
    return None


SIGNALS: Mapping[str, Callable[[Session], Reading | None]] = MappingProxyType(
    {
        "exit_status": exit_status,
        "tests": tests,
        "changes": changes,
        "next_words": next_words,
        "marks": marks,
        "ending": ending,
    }
)
"""All signals by name."""
