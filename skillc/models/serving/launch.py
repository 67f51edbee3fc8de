"""One server before it runs: its weights, options, identity in cache keys, command line and environment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.json_values import digest
from skillc.models.serving.options import Options, options_of
from skillc.plan.digest import SERVED_ALIKE
from skillc.plan.schema import ModelPlan

_APART = (*SERVED_ALIKE, "model", "tokenizer", "chat_template", "lora")
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


@dataclass(frozen=True, slots=True)
class Launch:
    """One server as one role asks for it.

    Attributes:
        role: whose model it is.
        name: what the role calls the model: the base model, or an adapter.
        source: what is served: an absolute folder, or a name on the hub.
        options: as declared.
        tokenizer, chat_template: absolute paths, or a name on the hub; None for the model's own.
        lora: absolute folders of the adapters by name.
        root: the folder that paths in the program start from.
        address: the declared address, None where skillc chooses one.
        identity: hex digest of all that decides a reply. The port is not in it.
    """

    role: str
    name: str
    source: str
    options: Options
    tokenizer: str | None
    chat_template: str | None
    lora: tuple[tuple[str, str], ...]
    root: Path
    address: str | None
    identity: str

    @property
    def shown(self) -> str:
        """The model as the program names it."""
        return self.options.model or self.name

    @property
    def endpoint_id(self) -> str:
        """The name of the endpoint in cache keys and messages (docs/design/resume.md)."""
        return f"vllm:{self.identity[:32]}"

    @property
    def server(self) -> str:
        """Hex digest that roles share whose models one server serves."""
        told = self.options
        how = [told.gpu_share, told.tensor_parallel, told.data_parallel, told.port, told.python, self.source]
        return digest({"server/1": [self.identity, *how, self.address]})

    @property
    def base_names(self) -> tuple[str, ...]:
        """The name that this role wants for the base model; none where it asks for an adapter."""
        return () if self.name in dict(self.lora) else (self.name,)


def launch_of(model: ModelPlan, root: Path, address: str | None) -> Launch:
    """The launch of a role whose plan has a `serve` block.

    Args:
        model: the role's plan.
        root: the folder that paths in the program start from.
        address: the declared address with its variable read, None where there is none.

    Raises:
        SkillcError: a wrong option, or a folder that is not there or holds no model.
    """
    options = options_of(model)
    name = model.model.partition("/")[2]
    if name in options.lora and options.model is None:
        raise SkillcError(
            f"model `{model.role}` is the adapter `{name}`, and nobody says what it adapts",
            hint='add `model = "..."` to its `serve` block',
        )
    memory = root / ".skillc" / "serve" / "digests.json"
    source, weights = _model(model.role, options.model or name, options.revision, root, memory)
    tokenizer, words = _tokenizer(model.role, options, root, memory)
    template = _file(model.role, options.chat_template, root)
    adapters = {each: _adapter(model.role, each, folder, root) for each, folder in options.lora.items()}
    told = {key: value for key, value in (model.serve or {}).items() if key not in _APART}
    identity = digest(
        {
            "served/1": told,
            "weights": weights,
            "tokenizer": words,
            "chat template": file_digest(template, memory) if template else None,
            "adapters": {each: folder_digest(folder, memory) for each, folder in adapters.items()},
            "address": address,
        }
    )
    return Launch(
        role=model.role,
        name=name,
        source=source,
        options=options,
        tokenizer=tokenizer,
        chat_template=str(template) if template else None,
        lora=tuple((each, str(folder)) for each, folder in sorted(adapters.items())),
        root=root.resolve(),
        address=address,
        identity=identity,
    )


def lora_rank(launch: Launch) -> int | None:
    """The least rank that vLLM admits and that holds all adapters; None where no adapter declares its rank."""
    found = [rank for _, folder in launch.lora if (rank := _rank(Path(folder))) is not None]
    if not found:
        return None
    return next((admitted for admitted in _RANKS if admitted >= max(found)), max(found))


def folder_meant(text: str, root: Path) -> Path | None:
    """The folder that a model's name means, None where it is a name on the hub.

    A text that begins with `./`, `../`, `/` or `~` is a folder; any other is one where such a folder holds a model.
    """
    path = (root / Path(text).expanduser()).resolve()
    if text.startswith(("./", "../", "/", "~")) or text in (".", ".."):
        return path
    return path if (path / "config.json").is_file() else None


def _model(role: str, text: str, revision: str | None, root: Path, memory: Path) -> tuple[str, str]:
    folder = folder_meant(text, root)
    if folder is None:
        if not _is_hub_name(text):
            raise SkillcError(
                f"model `{role}` serves `{text}`, which is neither a folder with a model nor a name on the hub",
                hint=f'write the folder from the program on: `model = "./{text}"`, or `organization/name`',
            )
        return text, f"{text}@{revision or 'main'}"
    if not folder.is_dir():
        raise SkillcError(f"model `{role}` serves `{text}`, and there is no folder `{folder}`")
    if not (folder / "config.json").is_file():
        raise SkillcError(
            f"model `{role}` serves `{folder}`, which holds no model: there is no `config.json`",
            hint="name the folder that holds the weights, the tokenizer and `config.json`",
        )
    return str(folder), folder_digest(folder, memory)


def _tokenizer(role: str, options: Options, root: Path, memory: Path) -> tuple[str | None, str | None]:
    text = options.tokenizer
    if text is None:
        return None, None
    folder = folder_meant(text, root) or ((root / text).resolve() if (root / text).is_dir() else None)
    if folder is None:
        return text, text
    if not folder.is_dir():
        raise SkillcError(f"model `{role}` takes the tokenizer of `{text}`, and there is no folder `{folder}`")
    return str(folder), folder_digest(folder, memory)


def _file(role: str, text: str | None, root: Path) -> Path | None:
    if text is None:
        return None
    path = (root / Path(text).expanduser()).resolve()
    if not path.is_file():
        raise SkillcError(f"model `{role}` takes the chat template of `{text}`, and there is no file `{path}`")
    return path


def _adapter(role: str, name: str, text: str, root: Path) -> Path:
    folder = (root / Path(text).expanduser()).resolve()
    if not (folder / "adapter_config.json").is_file():
        raise SkillcError(
            f"model `{role}` serves the adapter `{name}`, and `{folder}` holds none: there is no `adapter_config.json`",
            hint="name the folder that PEFT wrote",
        )
    return folder


def _rank(folder: Path) -> int | None:
    try:
        rank = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8")).get("r")
    except (OSError, ValueError, AttributeError):
        return None
    return rank if isinstance(rank, int) else None


def _is_hub_name(text: str) -> bool:
    parts = text.split("/")
    return len(parts) == 2 and all(part and part[0] not in ".~-" and " " not in part for part in parts)


HOST = "127.0.0.1"
_MODULE = "vllm.entrypoints.openai.api_server"
# Another interpreter's home would be taken for its own; keys of providers are none of a server's business.
_DROPPED = ("PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


def command(launch: Launch, python: Path, names: Sequence[str], port: int) -> list[str]:
    """The command line.

    Args:
        launch: what is served.
        python: the interpreter that has vLLM.
        names: what the base model is called, one at least.
        port: on the loopback.
    """
    told, flags = launch.options, ["--enable-prompt-tokens-details"]
    for flag, value in (
        ("--revision", told.revision),
        ("--tokenizer", launch.tokenizer),
        ("--chat-template", launch.chat_template),
        ("--max-model-len", told.max_len),
        ("--dtype", told.dtype),
        ("--quantization", told.quantization),
        ("--gpu-memory-utilization", told.gpu_share),
        ("--tensor-parallel-size", told.tensor_parallel),
        ("--data-parallel-size", told.data_parallel),
    ):
        if value is not None:
            flags += [flag, str(value)]
    if launch.lora:
        rank = lora_rank(launch)
        flags += ["--enable-lora", "--max-loras", str(len(launch.lora))]
        flags += ["--max-lora-rank", str(rank)] if rank is not None else []
        flags += ["--lora-modules", *(f"{name}={folder}" for name, folder in launch.lora)]
    where = ["--host", HOST, "--port", str(port), "--served-model-name", *names]
    return [str(python), "-m", _MODULE, "--model", launch.source, *where, *flags, *told.args]


def environment(launch: Launch, key: str, secret_names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The server's variables: the process's own without what is secret, what the program adds, the server's key.

    Args:
        launch: what is served.
        key: what callers have to show; in the environment, because other users see command lines.
        secret_names: variables that hold keys of providers.
        environ: the process's own.
    """
    dropped = {*_DROPPED, *secret_names}
    kept = {name: value for name, value in environ.items() if name not in dropped}
    quiet = {"VLLM_NO_USAGE_STATS": "1", "PYTHONUNBUFFERED": "1"}
    return {**quiet, **kept, **launch.options.env, "VLLM_API_KEY": key}


_THREADS = 8
# Neither is read by a server.
_IGNORED = frozenset({".md", ".txt", ".png", ".jpg", ".gitattributes"})
_KEPT = frozenset({"merges.txt", "vocab.txt"})


def folder_digest(folder: Path, memory: Path | None) -> str:
    """Hex sha256 over names and contents of the files right in a folder, which is where a server looks.

    Args:
        folder: weights, tokenizer, chat template and configuration.
        memory: the file that remembers digests by path, size and time of change; None remembers nothing.

    Raises:
        SkillcError: it cannot be read.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file() and _counts(path))
        return _digest(zip([path.name for path in files], _digests(files, memory), strict=True))
    except OSError as problem:
        raise SkillcError(f"the model's folder `{folder}` cannot be read: {problem.strerror}") from problem


def file_digest(file: Path, memory: Path | None) -> str:
    """Hex sha256 of one file.

    Raises:
        SkillcError: it cannot be read.
    """
    try:
        return _digests([file], memory)[0]
    except OSError as problem:
        raise SkillcError(f"`{file}` cannot be read: {problem.strerror}") from problem


def _counts(path: Path) -> bool:
    return not path.name.startswith(".") and (path.suffix not in _IGNORED or path.name in _KEPT)


def _digest(parts: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()


def _digests(files: list[Path], memory: Path | None) -> list[str]:
    known = _remembered(memory)
    stamps = {str(path.resolve()): _stamp(path) for path in files}
    stale = [path for path, stamp in stamps.items() if known.get(path, ["", 0, 0])[1:] != stamp]
    if stale:
        with ThreadPoolExecutor(_THREADS) as pool:
            for path, made in zip(stale, pool.map(_sha256, stale), strict=True):
                known[path] = [made, *stamps[path]]
        _remember(memory, known)
    return [str(known[str(path.resolve())][0]) for path in files]


def _stamp(path: Path) -> list[str | int]:
    about = path.stat()
    return [about.st_size, about.st_mtime_ns]


def _sha256(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remembered(memory: Path | None) -> dict[str, list[str | int]]:
    try:
        known = json.loads(memory.read_text(encoding="utf-8")) if memory else {}
    except (OSError, ValueError):
        return {}
    whole = isinstance(known, dict) and all(isinstance(each, list) and len(each) == 3 for each in known.values())
    return known if whole else {}


def _remember(memory: Path | None, known: dict[str, list[str | int]]) -> None:
    if memory is None:
        return
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(memory, json.dumps(known, indent=1, sort_keys=True))
    except OSError:
        # It is hashed again the next time.
        return
