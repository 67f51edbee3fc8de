"""How one server is launched: its weights, options, identity in cache keys, command line and environment."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.files import write_atomically
from skillc.json_values import digest
from skillc.models.serving.installed import INVARIANCE, is_batch_invariant
from skillc.models.serving.options import Options, options_of
from skillc.plan.digest import SERVED_ALIKE
from skillc.plan.schema import ModelPlan

_HASHED_APART = (*SERVED_ALIKE, "model", "tokenizer", "chat_template", "lora", "batch_invariant")
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)


@dataclass(frozen=True, slots=True)
class Launch:
    """One server as one role asks for it.

    Attributes:
        role: whose model it is.
        name: the role's name for the model: the base model, or an adapter.
        source: an absolute folder, or a name on the hub.
        options: as declared.
        tokenizer, chat_template: absolute paths, or a name on the hub; None for the model's own.
        lora: absolute folders of the adapters by name.
        batch_invariant: whether its replies do not depend on the other calls.
        root: the folder that paths in the program are relative to.
        address: the declared address; None if skillc chooses one.
        identity: hex digest of all that decides a reply. It excludes the port.
    """

    role: str
    name: str
    source: str
    options: Options
    tokenizer: str | None
    chat_template: str | None
    lora: tuple[tuple[str, str], ...]
    batch_invariant: bool
    root: Path
    address: str | None
    identity: str

    @property
    def model_name(self) -> str:
        """The model as the program names it."""
        return self.options.model or self.name

    @property
    def endpoint_id(self) -> str:
        """The name of the endpoint in cache keys and messages (docs/design/resume.md)."""
        return f"vllm:{self.identity[:32]}"

    @property
    def server_id(self) -> str:
        """Hex digest that is equal for roles whose models one server serves."""
        options = self.options
        parallel = [options.gpu_share, options.tensor_parallel, options.data_parallel]
        return digest({"server/1": [self.identity, *parallel, options.port, options.python, self.source, self.address]})

    @property
    def base_names(self) -> tuple[str, ...]:
        """The name that this role uses for the base model; none if it uses an adapter."""
        return () if self.name in dict(self.lora) else (self.name,)


def launch_of(model: ModelPlan, root: Path, address: str | None) -> Launch:
    """Resolve the launch of a role whose plan has a `serve` block; paths in it are relative to `root`.

    `address` is the declared address with its variable read; None without one. Raises `SkillcError` for an invalid
    option, and for a folder that is missing or contains no model.
    """
    options = options_of(model)
    name = model.model.partition("/")[2]
    if name in options.lora and options.model is None:
        raise SkillcError(
            f"model `{model.role}` is the adapter `{name}`, and its base model is not configured",
            hint='add `model = "..."` to its `serve` block',
        )
    memory = root / ".skillc" / "serve" / "digests.json"
    source, weights = _model(model.role, options.model or name, options.revision, root, memory)
    tokenizer, tokenizer_id = _tokenizer(model.role, options, root, memory)
    template, template_digest = _chat_template(model.role, options.chat_template, root, memory)
    adapters = {each: _adapter(model.role, each, folder, root) for each, folder in options.lora.items()}
    invariant = is_batch_invariant(model, address, root, os.environ)
    hashed = {key: value for key, value in (model.serve or {}).items() if key not in _HASHED_APART}
    identity = digest(
        {
            "served/1": hashed,
            "weights": weights,
            "tokenizer": tokenizer_id,
            "chat template": template_digest,
            "adapters": {each: _folder_digest(folder, memory) for each, folder in adapters.items()},
            # Replies of a base model beside adapters differ without the empty slot.
            **({"lora slots": _slots(adapters)} if adapters else {}),
            "address": address,
            **({"batch invariant": True} if invariant else {}),
        }
    )
    return Launch(
        role=model.role,
        name=name,
        source=source,
        options=options,
        tokenizer=tokenizer,
        chat_template=template,
        lora=tuple((each, str(folder)) for each, folder in sorted(adapters.items())),
        batch_invariant=invariant,
        root=root.resolve(),
        address=address,
        identity=identity,
    )


def _model_folder(text: str, root: Path) -> Path | None:
    """Return the folder that a model's name refers to; None for a name on the hub.

    A text that begins with `./`, `../`, `/` or `~` is a folder; any other is one if such a folder contains a model.
    """
    path = (root / Path(text).expanduser()).resolve()
    if text.startswith(("./", "../", "/", "~")) or text in (".", ".."):
        return path
    return path if (path / "config.json").is_file() else None


def _model(role: str, text: str, revision: str | None, root: Path, memory: Path) -> tuple[str, str]:
    folder = _model_folder(text, root)
    if folder is None:
        parts = text.split("/")
        if len(parts) != 2 or any(not part or part[0] in ".~-" or " " in part for part in parts):
            raise SkillcError(
                f"model `{role}` serves `{text}`, which is neither a folder with a model nor a name on the hub",
                hint=f'write the folder relative to the program, `model = "./{text}"`, or `organization/name`',
            )
        return text, f"{text}@{revision or 'main'}"
    if not folder.is_dir():
        raise SkillcError(f"model `{role}` serves `{text}`, and the folder `{folder}` does not exist")
    if not (folder / "config.json").is_file():
        raise SkillcError(
            f"model `{role}` serves `{folder}`, which contains no model: `config.json` is missing",
            hint="name the folder that contains the weights, the tokenizer and `config.json`",
        )
    return str(folder), _folder_digest(folder, memory)


def _tokenizer(role: str, options: Options, root: Path, memory: Path) -> tuple[str | None, str | None]:
    text = options.tokenizer
    if text is None:
        return None, None
    folder = _model_folder(text, root) or ((root / text).resolve() if (root / text).is_dir() else None)
    if folder is None:
        return text, text
    if not folder.is_dir():
        raise SkillcError(f"the tokenizer `{text}` of model `{role}` is missing: the folder `{folder}` does not exist")
    return str(folder), _folder_digest(folder, memory)


def _chat_template(role: str, text: str | None, root: Path, memory: Path) -> tuple[str | None, str | None]:
    if text is None:
        return None, None
    path = (root / Path(text).expanduser()).resolve()
    if not path.is_file():
        raise SkillcError(f"the chat template `{text}` of model `{role}` is missing: the file `{path}` does not exist")
    return str(path), _digests([path], memory)[0]


def _adapter(role: str, name: str, text: str, root: Path) -> Path:
    folder = (root / Path(text).expanduser()).resolve()
    if not (folder / "adapter_config.json").is_file():
        raise SkillcError(
            f"model `{role}` serves the adapter `{name}`, and `{folder}` has none: `adapter_config.json` is missing",
            hint="name the folder that PEFT wrote",
        )
    return folder


HOST = "127.0.0.1"
KEY_VARIABLE = "VLLM_API_KEY"
_MODULE = "vllm.entrypoints.openai.api_server"
# They describe skillc's own interpreter.
_DROPPED = ("PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


def command(launch: Launch, python: Path, names: Sequence[str], port: int) -> list[str]:
    """Return the command line of a server; `names` are those of the base model, at least one."""
    options, flags = launch.options, ["--enable-prompt-tokens-details"]
    for flag, value in (
        ("--revision", options.revision),
        ("--tokenizer", launch.tokenizer),
        ("--chat-template", launch.chat_template),
        ("--max-model-len", options.max_len),
        ("--dtype", options.dtype),
        ("--quantization", options.quantization),
        ("--gpu-memory-utilization", options.gpu_share),
        ("--tensor-parallel-size", options.tensor_parallel),
        ("--data-parallel-size", options.data_parallel),
    ):
        if value is not None:
            flags += [flag, str(value)]
    if launch.lora:
        flags += ["--enable-lora", "--max-loras", str(_slots(launch.lora)), *_rank_flag(launch)]
        flags += ["--lora-modules", *(f"{name}={folder}" for name, folder in launch.lora)]
    address = ["--host", HOST, "--port", str(port), "--served-model-name", *names]
    return [str(python), "-m", _MODULE, "--model", launch.source, *address, *flags, *options.args]


def _slots(adapters: Sized) -> int:
    """Return the slots for adapters: one more than there are, which stays empty.

    On the CPU vLLM reads the last slot for a request of the base model that shares a batch with one of an adapter, and
    so adds the adapter in the last slot to it (vllm-project/vllm#48421). An empty slot adds nothing.
    """
    return len(adapters) + 1


def _rank_flag(launch: Launch) -> list[str]:
    """Set the smallest rank that vLLM accepts and that fits all adapters; nothing if no adapter declares its rank."""
    ranks = []
    for _, folder in launch.lora:
        try:
            rank = json.loads((Path(folder) / "adapter_config.json").read_text(encoding="utf-8")).get("r")
        except (OSError, ValueError, AttributeError):
            continue
        ranks += [rank] if isinstance(rank, int) else []
    if not ranks:
        return []
    return ["--max-lora-rank", str(next((rank for rank in _RANKS if rank >= max(ranks)), max(ranks)))]


def environment(launch: Launch, key: str, secret_names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the server's variables: the process's own without secrets, those of the program, and the server's key.

    The key is in the environment, because other users see command lines.
    """
    dropped = {*_DROPPED, *secret_names}
    kept = {name: value for name, value in environ.items() if name not in dropped}
    quiet = {"VLLM_NO_USAGE_STATS": "1", "PYTHONUNBUFFERED": "1"}
    invariant = {INVARIANCE: "1"} if launch.batch_invariant else {}
    return {**quiet, **kept, **invariant, **launch.options.env, KEY_VARIABLE: key}


_THREADS = 8
# Files that a server does not read, and exceptions to their endings.
_IGNORED = frozenset({".md", ".txt", ".png", ".jpg", ".gitattributes"})
_READ_ANYWAY = frozenset({"merges.txt", "vocab.txt"})


def _folder_digest(folder: Path, memory: Path) -> str:
    """Return the hex sha256 of names and contents of a folder's files; servers do not read its subfolders.

    The file `memory` caches digests by path, size and modification time.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file() and _is_read(path))
    except OSError as problem:
        raise SkillcError(f"the model's folder `{folder}` cannot be read: {problem.strerror}") from problem
    parts = list(zip([path.name for path in files], _digests(files, memory), strict=True))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _is_read(path: Path) -> bool:
    return not path.name.startswith(".") and (path.suffix not in _IGNORED or path.name in _READ_ANYWAY)


def _digests(files: list[Path], memory: Path) -> list[str]:
    known = _read_memory(memory)
    stamps: dict[str, list[str | int]] = {}
    try:
        for path in files:
            about = path.stat()
            stamps[str(path.resolve())] = [about.st_size, about.st_mtime_ns]
        stale = [path for path, stamp in stamps.items() if known.get(path, ["", 0, 0])[1:] != stamp]
        with ThreadPoolExecutor(_THREADS) as pool:
            for name, sha256 in zip(stale, pool.map(_sha256, stale), strict=True):
                known[name] = [sha256, *stamps[name]]
    except OSError as problem:
        raise SkillcError(f"`{problem.filename}` cannot be read: {problem.strerror}") from problem
    if stale:
        with suppress(OSError):  # hashed again next time
            memory.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(memory, json.dumps(known, indent=1, sort_keys=True))
    return [str(known[str(path.resolve())][0]) for path in files]


def _sha256(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_memory(memory: Path) -> dict[str, list[str | int]]:
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    valid = isinstance(known, dict) and all(isinstance(each, list) and len(each) == 3 for each in known.values())
    return known if valid else {}
