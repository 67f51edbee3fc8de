"""Train an adapter from training files: check, estimate, train, report."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from skillc.data.dataset import load_data
from skillc.data.withdrawn import withdrawn_near
from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.frontend import plan_file
from skillc.training.checks import Kind, check_base, check_rate, check_room, read_training_file
from skillc.training.environment import RUNNER, find_trainer, versions

FORMAT = 1
"""The version of `training.json`."""
# Loading, saving and slower first steps add to the time of the steps.
_OVERHEAD = 1.2
_DIGITS = 10

Report = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a training.

    Attributes:
        rate, dpo_rate: learning rates at their highest; they fall by a cosine.
        beta: of DPO: how closely the adapter is kept to the SFT adapter.
        alpha: LoRA's scale; the update is scaled by alpha / rank.
        modules: those that get LoRA weights; by default all linear layers but the output layer.
        max_length: tokens of a row, prompt and completion together.
    """

    epochs: int = 3
    rate: float = 2e-4
    dpo_epochs: int = 1
    dpo_rate: float = 2e-5
    beta: float = 0.1
    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    modules: tuple[str, ...] = ()
    batch: int = 8
    max_length: int = 2048
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of a training on this machine, from a timed step.

    Attributes:
        hours: of all stages.
        dollars: None without a price.
        tokens: that are trained on, over all epochs.
        memory: peak of a step on the longest rows, in bytes.
    """

    hours: float
    dollars: float | None
    tokens: int
    memory: int
    device: str
    architecture: str
    parameters: int
    target_modules: tuple[str, ...]


class Distillation:
    """A training of an adapter, checked on construction, before anything is spent.

    Args:
        program: whose test examples must not be trained on.
        base: the folder of the base model.
        sft, dpo: training files; at least one.
        out: the adapter's folder.

    Raises:
        SkillcError: as the functions of `checks`; TRL is missing; or `out` contains something else.
    """

    def __init__(
        self, program: Path, base: Path, *, out: Path, settings: Settings, sft: Path | None, dpo: Path | None
    ) -> None:
        if sft is None and dpo is None:
            raise SkillcError("there is nothing to train on", hint="name a file: `--sft FILE`, `--dpo FILE`, or both")
        self.base, self.out, self.settings = base.resolve(), out, settings
        rates = [check_rate(settings.rate, "sft")] if sft is not None else []
        rates += [check_rate(settings.dpo_rate, "dpo")] if dpo is not None else []
        weights = check_base(self.base)
        planned = plan_file(program, complete=False)
        test = load_data(planned.plan, program.parent).test
        named: tuple[tuple[Kind, Path | None], ...] = (("sft", sft), ("dpo", dpo))
        gone = withdrawn_near(program.parent)
        self.files = tuple(read_training_file(path, kind, test, gone) for kind, path in named if path is not None)
        self.warnings = [each for each in rates if each] + [each for file in self.files for each in file.warnings]
        self._python = find_trainer(program.parent)
        check_room(weights, out.absolute(), gpu=any(Path(each).exists() for each in ("/dev/nvidia0", "/dev/kfd")))
        self.job = self._job()
        self._home = out / ".training"
        self._refuse_another()

    def _job(self) -> dict[str, Any]:
        each = self.settings
        by_kind = {
            "sft": {"epochs": each.epochs, "learning_rate": each.rate},
            "dpo": {"epochs": each.dpo_epochs, "learning_rate": each.dpo_rate, "beta": each.beta},
        }
        stages = [
            {
                "kind": file.kind,
                "file": str(file.path.resolve()),
                "sha256": file.sha256,
                "save_steps": max(1, len(file.rows) // each.batch // 2),
                **by_kind[file.kind],
            }
            for file in self.files
        ]
        return {
            "base": str(self.base),
            "config": hashlib.sha256((self.base / "config.json").read_bytes()).hexdigest(),
            "home": str((self.out / ".training").absolute()),
            "stages": stages,
            "rank": each.rank,
            "alpha": each.alpha,
            "dropout": each.dropout,
            "target_modules": list(each.modules),
            "max_length": each.max_length,
            "batch": each.batch,
            "seed": each.seed,
        }

    def _refuse_another(self) -> None:
        """Refuse a folder with a finished adapter, with other files, or with another training that was stopped."""
        if not self.out.exists():
            return
        if not self.out.is_dir():
            raise SkillcError(f"`{self.out}` is not a folder", hint="name another one: `--out`")
        if (self.out / "training.json").exists():
            raise SkillcError(f"`{self.out}` has a finished adapter", hint="name another folder, or remove this one")
        path = self._home / "job.json"
        if path.is_file():
            if json.loads(path.read_text(encoding="utf-8")) != self.job:
                raise SkillcError(
                    f"`{self.out}` has a stopped training with other files or settings",
                    hint="use the same ones to resume it, or remove the folder",
                )
        elif any(each.name != ".training" for each in self.out.iterdir()):
            raise SkillcError(f"`{self.out}` is not empty", hint="name a new folder: `--out`")

    def estimate(self, price: float | None = None) -> Estimate:
        """Run a timed step, and return the estimate.

        Args:
            price: dollars an hour.

        Raises:
            SkillcError: the chat template, a length or the memory is a problem.
        """
        self._home.mkdir(parents=True, exist_ok=True)
        model: Mapping[str, Any] = {}
        lengths = dict[str, Mapping[str, Any]]()
        for event in self._run("check"):
            if event["event"] == "lengths":
                self._refuse_long(event)
                lengths[event["stage"]] = event
            elif event["event"] == "model":
                model = event
        seconds, tokens = 0.0, 0
        for stage in self.job["stages"]:
            count = lengths[stage["kind"]]["tokens"] * stage["epochs"]
            # DPO's reference takes a forward pass on each token.
            extra = model["forward_seconds_a_token"] if stage["kind"] == "dpo" else 0.0
            seconds += count * (model["seconds_a_token"] + extra)
            tokens += count
        hours = seconds * _OVERHEAD / 3600
        return Estimate(
            hours,
            None if price is None else hours * price,
            tokens,
            model["memory"],
            model["device"],
            model["architecture"],
            model["parameters"],
            tuple(model["target_modules"]),
        )

    def _refuse_long(self, event: Mapping[str, Any]) -> None:
        if event["too_long"]:
            limit = self.settings.max_length
            raise SkillcError(
                f"{event['too_long']} completions of the {event['stage'].upper()} file would be cut: they are longer "
                f"than {limit} tokens with their prompts, the longest has {event['longest']}",
                hint=f"use `--max-length {event['longest']}`, or leave these rows out",
            )

    def train(self, estimate: Estimate, *, price: float | None = None, report: Report = lambda event: None) -> Path:
        """Train, from the last checkpoint if it was stopped, and return the path of `training.json`.

        Raises:
            SkillcError: another process trains into the folder, or the training failed; checkpoints stay.
        """
        self._home.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._home / "lock", timeout=0):
                return self._train(estimate, price, report)
        except Timeout:
            raise SkillcError(f"another process trains into `{self.out}`", hint="wait for it") from None

    def _train(self, estimate: Estimate, price: float | None, report: Report) -> Path:
        write_atomically(self._home / "job.json", json.dumps(self.job))
        stages = []
        for event in self._run("train"):
            report(event)
            if event["event"] == "stage":
                figures = {name: value for name, value in event.items() if name not in ("event", "resumed", "seconds")}
                stages.append({**figures, "hours": event["seconds"] / 3600})
        hours = sum(stage["hours"] for stage in stages)
        last = self._home / self.job["stages"][-1]["kind"] / "adapter"
        for file in ("adapter_model.safetensors", "adapter_config.json"):
            beside = self.out / f".{file}.new"
            shutil.copyfile(last / file, beside)
            beside.replace(self.out / file)
        known = [file.manifest or {} for file in self.files]
        record = {
            "format_version": FORMAT,
            "base": {"path": str(self.base), "config": self.job["config"]},
            "files": [
                {"kind": file.kind, "path": str(file.path), "sha256": file.sha256, "rows": len(file.rows)}
                for file in self.files
            ],
            "skill": next((each["skill"] for each in known if each.get("skill")), None),
            "used": union_of(str(each.get("used", "")) for each in known),
            "used_inputs": union_of(str(each.get("used_inputs", "")) for each in known),
            "settings": {**asdict(self.settings), "modules": list(self.settings.modules)},
            "lora": {
                "rank": self.settings.rank,
                "alpha": self.settings.alpha,
                "target_modules": list(estimate.target_modules),
            },
            "stages": stages,
            "hours": hours,
            "estimated_hours": estimate.hours,
            "dollars": None if price is None else hours * price,
            "device": estimate.device,
            "versions": versions(self._python),
        }
        # Written last: a folder without it is not finished.
        write_atomically(self.out / "training.json", json.dumps(record, indent=1) + "\n")
        shutil.rmtree(self._home, ignore_errors=True)
        return self.out / "training.json"

    def _run(self, command: str) -> Iterator[dict[str, Any]]:
        """Run the runner and yield its events; its log is `.training/COMMAND.log`."""
        path, log = self._home / f"{command}.json", self._home / f"{command}.log"
        write_atomically(path, json.dumps(self.job))
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with (
            log.open("w", encoding="utf-8") as errors,
            subprocess.Popen(
                [str(self._python), str(RUNNER), command, str(path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environ,
            ) as process,
        ):
            ended = False
            try:
                for line in process.stdout or ():
                    event: dict[str, Any] = json.loads(line)
                    if event["event"] == "problem":
                        raise SkillcError(event["problem"], hint=event["hint"] or None)
                    ended = event["event"] == "end"
                    yield event
            except BaseException:
                # Also Ctrl-C, and a reader that stops: the training ends, and its checkpoints stay.
                process.terminate()
                raise
        if not ended:
            raise SkillcError(
                f"the {command} process ended with status {process.returncode}: {last_line(log)}",
                hint=f"its log is `{log}`; the same command resumes from the last checkpoint",
            )


def union_of(marks: Sequence[str] | Iterator[str]) -> str:
    """Return the union of marks, in order."""
    return "".join(sorted({each[i : i + _DIGITS] for each in marks for i in range(0, len(each), _DIGITS)}))


def last_line(log: Path) -> str:
    """Return the last line of a log."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else "it printed nothing"
