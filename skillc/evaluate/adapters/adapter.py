"""LoRA adapters: add them to a server, read the records of their training, check that a server has them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from skillc.data.split import marked
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.evaluate.measuring import check_places, chosen_models
from skillc.models.backends.registry import connect
from skillc.models.endpoint import VLLM_PROVIDERS
from skillc.models.serving.options import PROVIDER
from skillc.models.serving.probe import Address, served_models
from skillc.outcomes import Example
from skillc.plan.models import TARGET
from skillc.plan.schema import ModelPlan, Plan
from skillc.text import counted, listed

CONFIG, TRAINING = "adapter_config.json", "training.json"
# Settings of a model that change which answers it samples.
_SAMPLING = frozenset(
    (
        *("temperature", "top_p", "top_k", "min_p", "seed", "stop", "max_tokens", "max_completion_tokens"),
        *("frequency_penalty", "presence_penalty", "repetition_penalty", "reasoning_effort", "chat_template_kwargs"),
    )
)
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Training:
    """What an adapter's `training.json` reports.

    Attributes:
        hours: of training, by the clock; None if unknown.
        dollars: that it cost; None if unknown.
        used: marks of the ids of the examples that it was trained on (`skillc.data.split.marks`).
        used_inputs: the same of their inputs (`input_marks`).
    """

    hours: float | None = None
    dollars: float | None = None
    used: str = ""
    used_inputs: str = ""

    def trained_on(self, examples: Sequence[Example]) -> list[str]:
        """Return the ids of those examples that the adapter was trained on."""
        return marked(examples, self.used, self.used_inputs)


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter of the target.

    Attributes:
        name: as the user, the program or the folder names it.
        model: the adapter as a model of its own, with the target's settings.
        folder: with `adapter_config.json`; None for one that another's server has.
        training: None if nothing is known of it.
        digest: hex sha256 of the folder's files; of the model's name and settings where there is no folder.
    """

    name: str
    model: ModelPlan
    folder: Path | None
    training: Training | None
    digest: str


def served_adapters(plan: Plan, texts: Sequence[str], root: Path) -> tuple[Plan, tuple[Adapter, ...]]:
    """Add adapters to the server of the target; return the changed plan, and the adapters.

    The base and its adapters are on one server. The program is not changed: an adapter joins the `lora` block for this
    plan only, for every role that shares the target's server.

    Args:
        plan: the program.
        texts: `FOLDER` or `NAME=FOLDER`, or the name of an adapter that the program declares.
        root: of the program.

    Raises:
        SkillcError: the target is not served by skillc or is an adapter itself, or an adapter cannot be used.
    """
    target = plan.models[TARGET]
    if target.serve is None:
        raise SkillcError(
            f"`--adapter` needs a target that skillc serves, and `{target.model}` is not",
            hint=f"give it `serve = vllm {{}}`, or name the adapter on its server: `--adapter-model {PROVIDER}/NAME`",
        )
    declared = _declared(target.serve.get("lora"))
    base = target.bare_name
    if base in declared:
        raise SkillcError(
            f"the target is the adapter `{base}` itself, so there is no base to compare it with",
            hint=f'use the base model as the target: `model target = "{PROVIDER}/base"`',
        )
    found = {}
    for text in texts:
        name, folder = _named(text, declared, root)
        if name in found:
            raise SkillcError(
                f"two adapters have the name `{name}`", hint=f"name one of them: `--adapter two={folder}`"
            )
        if name == base:
            raise SkillcError(
                f"the adapter `{name}` has the name of the base model", hint=f"`--adapter tuned={folder}`"
            )
        if name in declared and (root / Path(declared[name]).expanduser()).resolve() != folder:
            raise SkillcError(
                f"the program declares another folder for the adapter `{name}`: `{declared[name]}`",
                hint=f"give this one another name: `--adapter {name}2={folder}`",
            )
        found[name] = folder
    lora: dict[str, JsonValue] = {
        **declared,
        **{name: str(path) for name, path in found.items() if name not in declared},
    }
    # Without `model` the served name is the weights', which would make the adapter's name the weights'.
    serve = {**target.serve, "model": target.serve.get("model") or base, "lora": lora}
    models = {
        role: model.model_copy(update={"serve": serve}) if model.serve == target.serve else model
        for role, model in plan.models.items()
    }
    served = models[TARGET]
    adapters = tuple(
        Adapter(
            name,
            served.model_copy(update={"role": f"adapter {name}", "model": f"{PROVIDER}/{name}"}),
            folder,
            read_training(folder),
            folder_digest(folder),
        )
        for name, folder in found.items()
    )
    return plan.model_copy(update={"models": models}), adapters


def base_notes(target: ModelPlan, adapters: Sequence[Adapter], root: Path) -> list[str]:
    """Return a note for each adapter whose configuration names another base than the one that is served."""
    notes = []
    served = str((target.serve or {}).get("model") or target.bare_name)
    for adapter in adapters:
        config = _json(adapter.folder / CONFIG) if adapter.folder is not None else None
        base = (config or {}).get("base_model_name_or_path")
        if not isinstance(base, str) or not base:
            continue
        folder = (root / Path(served).expanduser()).resolve()
        if base == served or Path(base).name in (folder.name, Path(served).name) or Path(base).resolve() == folder:
            continue
        notes.append(f"the adapter `{adapter.name}` was trained on `{base}`, and the target serves `{served}`")
    return notes


def _declared(value: JsonValue) -> dict[str, str]:
    if isinstance(value, dict):
        return {name: str(folder) for name, folder in value.items()}
    parts = [str(each).partition("=") for each in value] if isinstance(value, list) else []
    return {name: folder for name, _, folder in parts}


def _named(text: str, declared: Mapping[str, str], root: Path) -> tuple[str, Path]:
    """Return name and folder of an adapter as the user named it.

    Raises:
        SkillcError: it is no folder with an adapter.
    """
    if text in declared and not Path(text, CONFIG).is_file():
        name, folder = text, (root / Path(declared[text]).expanduser()).resolve()
    else:
        name, equals, path = text.partition("=")
        folder = Path(path if equals else text).expanduser().resolve()
        name = name.strip() if equals else folder.name
    if not name or "/" in name or any(c.isspace() or not c.isprintable() for c in name):
        raise SkillcError(f"`{name}` is no name for an adapter", hint=f"`--adapter tuned={folder}`")
    if not folder.is_dir():
        raise SkillcError(f"the adapter's folder `{folder}` does not exist", hint="name the folder that PEFT wrote")
    config = _json(folder / CONFIG)
    if config is None:
        raise SkillcError(
            f"`{folder}` contains no adapter: `{CONFIG}` is missing or is no JSON",
            hint="name the folder that PEFT's `save_pretrained` wrote",
        )
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        raise SkillcError(f"the adapter `{folder}` is of the type `{kind}`, and vLLM serves LoRA", hint="train a LoRA")
    if not any((folder / name).is_file() for name in ("adapter_model.safetensors", "adapter_model.bin")):
        raise SkillcError(
            f"`{folder}` contains no weights: `adapter_model.safetensors` is missing",
            hint="name the folder that PEFT's `save_pretrained` wrote",
        )
    return name, folder


def read_training(folder: Path) -> Training | None:
    """Return what `training.json` reports; None without the file.

    Raises:
        SkillcError: it cannot be read, so it is unknown which examples the adapter was trained on.
    """
    path = folder / TRAINING
    if not path.exists():
        return None
    found = _json(path)
    if found is None:
        raise SkillcError(f"`{path}` is not a JSON object", hint="restore it, or remove it if it is not the adapter's")
    used, inputs = (found.get(name, "") for name in ("used", "used_inputs"))
    if not isinstance(used, str) or not isinstance(inputs, str):
        raise SkillcError(f"`{path}` has no readable list of examples in `used`", hint="restore the file")
    return Training(_amount(found.get("hours")), _amount(found.get("dollars")), used, inputs)


def _amount(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def folder_digest(folder: Path) -> str:
    """Return the hex sha256 of an adapter's configuration and weights.

    Raises:
        SkillcError: a file cannot be read.
    """
    whole = hashlib.sha256()
    try:
        for path in sorted(folder.glob("adapter_*")):
            with path.open("rb") as file:
                whole.update(f"{path.name}\n{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be read: {problem.strerror}") from problem
    return whole.hexdigest()


# ---- servers that someone else runs ---------------------------------------------------------------


def named_adapters(plan: Plan, texts: Sequence[str], root: Path, *, offline: bool) -> tuple[Adapter, ...]:
    """Return adapters that are models of their own, on the server of the target.

    Args:
        plan: the program.
        texts: `provider/name`, or a role of the program.
        root: of the program.
        offline: the rulebook replaces every model.

    Raises:
        SkillcError: a model cannot be used, or is not sampled as the target is.
    """
    if not texts:
        return ()
    target = plan.models[TARGET]
    found = []
    for text in dict.fromkeys(texts):
        (model,) = chosen_models(plan, [text], offline=offline)
        if model.model == target.model and model.backend == target.backend and model.base_url == target.base_url:
            same = model.model_copy(update={"role": TARGET}) == target
            if same or model.provider in VLLM_PROVIDERS:
                raise SkillcError(f"`--adapter-model {text}` is the target itself", hint="name the adapter's model")
        check_places(plan, [model], root)
        if _sampling(model) != _sampling(target):
            raise SkillcError(
                f"`{text}` is sampled with other settings than the target, so they cannot be compared",
                hint="give both the same temperature and limits",
            )
        model = model.model_copy(update={"role": f"adapter {text}", "price": model.price or target.price})
        identity = model.model_dump_json(exclude={"pacing", "role"})
        found.append(
            Adapter(text.partition("/")[2] or text, model, None, None, hashlib.sha256(identity.encode()).hexdigest())
        )
    return tuple(found)


def _sampling(model: ModelPlan) -> dict[str, JsonValue]:
    return {name: value for name, value in model.parameters.items() if name in _SAMPLING}


def check_served(target: ModelPlan, adapters: Sequence[Adapter], root: Path) -> list[str]:
    """Ask the server of the target whether it has the adapters, and whether they are the target's; return notes.

    Only an address of vLLM that someone else runs is asked.

    Raises:
        SkillcError: the server has no such model, or it is an adapter of another model.
    """
    notes = []
    for adapter in adapters:
        if (
            adapter.folder is not None
            or adapter.model.provider not in VLLM_PROVIDERS
            or adapter.model.serve is not None
        ):
            continue
        _, endpoint, *_ = connect(adapter.model, os.environ, root)
        if endpoint.url is None:
            continue
        status, cards = served_models(Address(endpoint.url, endpoint.key or ""))
        if status != 200:
            why = "does not answer" if status is None else f"answers {status}"
            raise SkillcError(
                f"cannot find out whether `{endpoint.id}` serves the adapter `{adapter.name}`: it {why} to `/models`",
                hint="start the server, or check its address and key",
            )
        card, base = cards.get(adapter.model.bare_name), cards.get(target.bare_name)
        if card is None:
            raise SkillcError(
                f"`{endpoint.id}` does not serve `{adapter.model.bare_name}`",
                hint=f"it serves {listed(cards, most=_NAMED)}; load the adapter with `--lora-modules NAME=FOLDER`",
            )
        parent = card.get("parent")
        if parent is None:
            notes.append(
                f"`{adapter.name}` is served as a model of its own, so nothing shows that it comes from "
                f"`{target.bare_name}`"
            )
        elif parent != target.bare_name and (base is None or card_root(cards, parent) != base.get("root")):
            raise SkillcError(
                f"`{adapter.name}` is an adapter of `{parent}`, and the target is `{target.bare_name}`",
                hint=f"compare it with its own base: `--model {PROVIDER}/{parent}`",
            )
    return notes


def card_root(cards: Mapping[str, Mapping[str, Any]], name: str) -> Any:
    """Return the weights that a served name stands for; None if it is unknown."""
    return cards.get(name, {}).get("root")


def check_untrained(
    adapters: Sequence[Adapter], examples: Sequence[Example], split: str, *, allowed: bool
) -> list[str]:
    """Refuse adapters that were trained on evaluated examples; return notes.

    Args:
        adapters: to check.
        examples: that are evaluated.
        split: their name.
        allowed: only note it.

    Raises:
        SkillcError: an adapter was trained on one, and that is not allowed.
    """
    notes = []
    for adapter in adapters:
        if adapter.training is None or not (adapter.training.used or adapter.training.used_inputs):
            notes.append(
                f"nothing is recorded of the examples that the adapter `{adapter.name}` was trained on, so they may be "
                f"among these"
            )
            continue
        shared = adapter.training.trained_on(examples)
        if not shared:
            continue
        what = (
            f"the adapter `{adapter.name}` was trained on {counted(len(shared), 'example')} of `{split}`: "
            f"{listed(shared, most=_NAMED)}"
        )
        if not allowed:
            raise SkillcError(
                what, hint="train it on the train split only, evaluate on new examples, or add `--allow-trained`"
            )
        notes.append(what)
    return notes
