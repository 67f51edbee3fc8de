"""A world with kinds of rules as real optimizers write them, and what each kind really does.

An example belongs to a topic. It is right without a rule, or wrong for the topic's cause, or its gold label is noise.
The name of a rule is in its text and tells all that is true of it: `S3` cures the cause of topic 3; `I3` does so too,
but clashes with the rules of certain topics unless it comes before them; `M3x17x45` cures examples 17 and 45;
`W3x17` cures example 17 and breaks others; `D8` cures nothing. Nothing here depends on how skillc searches.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from benchmarks.search.world import POPULATION, Cites

_RULE = re.compile(r"\b([SIWMD]\d+(?:x\d+)*)\b")
_WAYS = ("answer", "always say", "the answer is", "reply with")
LABELS = ("ash", "birch", "cedar", "elm", "fir", "hazel", "oak", "yew")
TOPIC_WORDS, COMMON_WORDS = 6, 40

State = Literal["right", "cause", "noise"]
Cause = Literal["unmet", "diluted", "wide", "clash"]
Rules = tuple[str, ...]


class Odds(NamedTuple):
    """Odds of the kinds of rules that an optimizer writes for a cause. They need not add up to 1."""

    general: float
    interfering: float
    wide: float
    memorised: float
    diluting: float


# Odds for a learnable cause: calibrated on a recorded run, and assumed for prompts with contrast.
RECORDED = Odds(0.27, 0.13, 0.25, 0.30, 0.05)
CONTRAST = Odds(0.40, 0.20, 0.12, 0.23, 0.05)
DRAFTED = Odds(0.47, 0.23, 0.10, 0.15, 0.05)
LETTERS = dict(zip(Odds._fields, "SIWMD", strict=True))


@dataclass(frozen=True, slots=True)
class Mix:
    """The parameters of a mixed world.

    Attributes:
        train: training examples.
        validation: validation examples.
        right: share of examples that are right without a rule.
        noise: share of examples with a wrong gold label, cured only by a memorised or wide rule that names them.
        causes: causes of failure, one for each topic.
        near: share of the right examples of its topic that a wide rule breaks.
        far: share of all other right examples that a wide rule breaks.
        clash: chance that an interfering rule clashes with the rules of another topic.
        clashed: share of the examples of both topics that are wrong where the interfering rule comes second.
        placed: chance that an edit puts an interfering rule first; drafts and rewrites always order their rules.
        dilution: share of the cured examples that each rule of the skill costs.
        vague: how many rules a diluting rule counts for.
        slip: chance that a rollout's outcome is inverted.
        proposals: most edits of one reflection.
        edits: odds of the kinds where a failure is shown without a right example of its topic.
        edits_contrast: odds of the kinds where such an example is shown.
        drafts: odds of the kinds in a draft, without contrast.
        drafts_contrast: odds of the kinds in a draft, with contrast.
        praise: chance that a reflection on right examples proposes an edit, a diluting (2 in 3) or a wide one.
        shrugs: chance that the optimizer takes a failure without a learnable cause for what it is.
        notices: chance that a draft notices a failure among examples that are shown with their gold alone.
        heeds: chance that the optimizer reconsiders a rule that it finds among the rejected edits.
        lifts: chance that a rewrite makes a general rule of two memorised or wide ones of a topic.
        lost: chance that a draft or a rewrite drops a rule of the skill.
        cited: chance that an edit is written for, and cites, a further failure of its cause.
        cites: `exactly` what an edit cures, `everything` shown, `nothing`, or `wrongly` (30 % of the citations).
        wordings: how many ways there are to write a rule.
    """

    train: int = 200
    validation: int = 100
    right: float = 0.30
    noise: float = 0.10
    causes: int = 12
    near: float = 0.25
    far: float = 0.005
    clash: float = 0.20
    clashed: float = 0.50
    placed: float = 0.5
    dilution: float = 0.005
    vague: int = 4
    slip: float = 0.01
    proposals: int = 4
    edits: Odds = RECORDED
    edits_contrast: Odds = CONTRAST
    drafts: Odds = RECORDED
    drafts_contrast: Odds = DRAFTED
    praise: float = 0.3
    shrugs: float = 0.5
    notices: float = 0.3
    heeds: float = 0.5
    lifts: float = 0.3
    lost: float = 0.02
    cited: float = 0.9
    cites: Cites = "exactly"
    wordings: int = 3

    def draw(self, seed: int) -> MixedWorld:
        """The world of a seed."""
        return MixedWorld(self, seed)


class Case(NamedTuple):
    """What is true of an example: its topic, its state, its gold label, and the other label that competes."""

    topic: int
    state: State
    gold: str
    other: str


class Fault(NamedTuple):
    """Why a skill gets an example wrong, and the rule to blame, if any."""

    cause: Cause
    rule: str = ""


@dataclass(frozen=True, slots=True)
class _Effects:
    """A skill's rules by what they do; `diluted` is the share of cured examples that it loses."""

    cured: frozenset[int]
    written_for: frozenset[int]
    wide: Mapping[int, str]
    clashes: Sequence[tuple[str, int, int]]
    diluted: float


@dataclass(frozen=True)
class MixedWorld:
    """One draw of the parameters."""

    settings: Mix
    seed: int

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Each example by number: training, validation, then the population that the gain is measured on."""
        own, chance = self.settings, random.Random(f"cases {self.seed}")
        weights = [chance.uniform(0.5, 1.5) for _ in range(own.causes)]
        states: tuple[State, ...] = ("right", "noise", "cause")
        shares = (own.right, own.noise, 1 - own.right - own.noise)
        found = []
        for _ in range(own.train + own.validation + POPULATION):
            (topic,), (state,) = chance.choices(range(own.causes), weights), chance.choices(states, shares)
            told, usual = self.labels(topic)
            if state == "cause" or chance.random() < 0.5:
                gold, other = told, usual
            else:
                gold, other = usual, told
            if state == "noise":
                gold = chance.choice([label for label in LABELS if label not in (told, usual)])
            found.append(Case(topic, state, gold, other))
        return tuple(found)

    def labels(self, topic: int) -> tuple[str, str]:
        """The label that the rule of a topic asks for, and the one that the target gives without it."""
        return self._labels[topic]

    @cached_property
    def _labels(self) -> tuple[tuple[str, str], ...]:
        found = []
        for topic in range(self.settings.causes):
            told, usual = random.Random(f"labels {self.seed} {topic}").sample(LABELS, 2)
            found.append((told, usual))
        return tuple(found)

    def row(self, case: int) -> dict[str, str]:
        """An example as the data file holds it: words of its topic, common words, and a word that no other has."""
        chance = random.Random(f"words {self.seed} {case}")
        words = [*chance.sample(self._words(self.cases[case].topic), 3), self._rare(case)]
        words += chance.sample([f"so{_word(i)}" for i in range(COMMON_WORDS)], 3)
        chance.shuffle(words)
        return {"id": str(case), "case": f"case {case}: {' '.join(words)}", "answer": self.cases[case].gold}

    def read(self, text: str) -> Rules:
        """The rules that a text contains, in order."""
        return tuple(_RULE.findall(text))

    def idea(self, text: str) -> str:
        """The rule that a line contains, whatever its wording."""
        return self.read(text)[0]

    def worded(self, rule: str, number: int) -> str:
        """A rule as a line of a skill."""
        topic, sources = parts(rule)
        label = self.labels(topic % self.settings.causes)[0]
        way = _WAYS[number % len(_WAYS)]
        if rule[0] == "M":
            words, label = [self._rare(case) for case in sources], self.cases[sources[0]].gold
        elif rule[0] == "D":
            return f"Read all words with care before you decide ({rule})."
        else:
            words = self._words(topic)[: 2 if rule[0] == "W" else 4]
        return f"If the text says {' or '.join(words)}, {way} {label} ({rule})."

    def fault(self, rules: Rules, case: int) -> Fault | None:
        """Why a skill gets an example wrong when the target does not slip; None where it gets it right."""
        does, own, true = self._effects(rules), self.settings, self.cases[case]
        written_for = case in does.written_for
        if true.state != "right":
            if not (written_for or (true.state == "cause" and true.topic in does.cured)):
                return Fault("unmet")
            if self._share("adheres", case) < does.diluted:
                return Fault("diluted")
        if written_for:
            return None
        if true.state == "right":
            for topic, rule in does.wide.items():
                if self._share("wide", topic, case) < (own.near if topic == true.topic else own.far):
                    return Fault("wide", rule)
        for rule, first, second in does.clashes:
            if true.topic in (first, second) and self._share("clash", first, second, case) < own.clashed:
                return Fault("clash", rule)
        return None

    def right(self, rules: Rules, case: int) -> bool:
        """Whether the target gets an example right when it does not slip."""
        return self.fault(rules, case) is None

    def answer(self, text: str, rules: Rules, case: int, sample: int) -> str:
        """The target's answer in one rollout."""
        right = self.right(rules, case) != (self._share("slips", text, f"{case} {sample}") < self.settings.slip)
        return self.cases[case].gold if right else self.cases[case].other

    def accuracy(self, rules: Rules) -> float:
        """The share of the population that a skill answers right, without slips."""
        population = range(len(self.cases) - POPULATION, len(self.cases))
        return sum(self.right(rules, case) for case in population) / POPULATION

    @cached_property
    def initial(self) -> float:
        """The accuracy of the empty skill."""
        return self.accuracy(())

    @cached_property
    def ideal(self) -> float:
        """The accuracy of the skill with the general rule of each cause, which is diluted by its length."""
        return self.accuracy(tuple(f"S{topic}" for topic in range(self.settings.causes)))

    def gain(self, rules: Rules) -> float:
        """The share of the attainable gain that a skill has."""
        return (self.accuracy(rules) - self.initial) / (self.ideal - self.initial)

    def clash(self, rule: str, other: str) -> bool:
        """Whether a rule must come before another one, because it is an exception to it."""
        if rule[0] != "I" or other[0] not in "SI":
            return False
        topic, of = parts(rule)[0], parts(other)[0]
        return topic != of and self._share("clashes", topic, of) < self.settings.clash

    def ordered(self, rules: Sequence[str]) -> list[str]:
        """The rules with exceptions first, as far as there is such an order, and otherwise as they came."""
        left, found = list(rules), []
        while left:
            free = (rule for rule in left if not any(self.clash(other, rule) for other in left if other != rule))
            found.append(next(free, left[0]))
            left.remove(found[-1])
        return found

    def _effects(self, rules: Rules) -> _Effects:
        if rules not in self._known:
            wide = {parts(rule)[0]: rule for rule in rules if rule[0] == "W"}
            clashes = [
                (rule, parts(rule)[0], parts(other)[0])
                for i, rule in enumerate(rules)
                for other in rules[:i]
                if self.clash(rule, other)
            ]
            weight = sum(self.settings.vague if rule[0] == "D" else 1 for rule in rules)
            self._known[rules] = _Effects(
                cured=frozenset(parts(rule)[0] for rule in rules if rule[0] in "SI"),
                written_for=frozenset(case for rule in rules for case in parts(rule)[1]),
                wide=wide,
                clashes=clashes,
                diluted=self.settings.dilution * weight,
            )
        return self._known[rules]

    @cached_property
    def _known(self) -> dict[Rules, _Effects]:
        return {}

    def _words(self, topic: int) -> list[str]:
        return [f"ba{_word(topic * TOPIC_WORDS + i)}" for i in range(TOPIC_WORDS)]

    def _rare(self, case: int) -> str:
        return f"qu{_word(case)}"

    def _share(self, *key: object) -> float:
        digest = hashlib.blake2b(repr((self.seed, *key)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def parts(rule: str) -> tuple[int, tuple[int, ...]]:
    """The topic of a rule, and the examples that it was written for where only those are cured."""
    topic, *sources = rule[1:].split("x")
    return int(topic), tuple(map(int, sources))


def _word(number: int) -> str:
    """A made-up word for a number, the same in every world."""
    letters = []
    for _ in range(3):
        number, consonant = divmod(number, 16)
        number, vowel = divmod(number, 5)
        letters.append("bcdfghjklmnprstv"[consonant] + "aeiou"[vowel])
    return "".join(letters)
