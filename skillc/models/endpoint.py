"""Endpoints and backends. Keys come from the environment only and are in no text and no file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from skillc.dataclass import dataclass
from skillc.errors import SkillcError
from skillc.models.failures import OFFLINE
from skillc.models.serving.launch import Launch
from skillc.models.serving.options import PROVIDER
from skillc.plan.digest import SECRET_NAME
from skillc.plan.schema import RULEBOOK, ModelPlan
from skillc.redaction import Secret

# Sends one attempt: from the arguments of `litellm.acompletion` to a reply in the OpenAI chat format.
Transport = Callable[[Mapping[str, Any]], Awaitable[Any]]

VLLM_PROVIDERS = frozenset({"hosted_vllm", "vllm"})
# Providers without a bill.
LOCAL_PROVIDERS = VLLM_PROVIDERS | {RULEBOOK, "ollama", "ollama_chat", "lm_studio", "llamafile"}

KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "azure": "AZURE_API_KEY",
    "cerebras": "CEREBRAS_API_KEY",
    "cohere": "COHERE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "fireworks_ai": "FIREWORKS_AI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "xai": "XAI_API_KEY",
}
_PORTS = {"http": 80, "https": 443}
NO_KEY = "none-needed"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model.

    Attributes:
        id: for cache keys and messages: normalised address, or the provider's name if litellm knows the address.
        url: as sent; None leaves it to litellm.
        key: the secret; never shown.
        key_env: its variable.
        launch: the server that skillc starts for it; until it runs `url` is `id`.
    """

    id: str
    url: str | None = None
    key: str | None = field(default=None, repr=False)
    key_env: str | None = None
    launch: Launch | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to answer for a model; `backends/registry.py` lists all.

    Attributes:
        name: for messages.
        connect: takes the role's plan, the environment and the program's folder; returns the endpoint and transport of
            the role, None if another backend answers for it. Raises a `SkillcError` that names the role and the fix if
            a key, an address, a command or a function is missing.
        networked: needs a network, so that the preflight tries it.
        keeps_prefixes: may cache the beginning of a prompt for the next call.
        embedded: part of skillc: never retried, receives the sample's index, and does not wait for the preflight.
        users: runs the user's code.
        load: imports what the first call needs.
    """

    name: str
    connect: Callable[[ModelPlan, Mapping[str, str], Path], tuple[Endpoint, Transport] | None]
    networked: bool = False
    keeps_prefixes: bool = False
    embedded: bool = False
    users: bool = False
    load: Callable[[], object] = lambda: None


def key_of(model: ModelPlan, environ: Mapping[str, str], key_env: str | None) -> str | None:
    """Return the key in a variable, None without a variable; raise `SkillcError` if it is not set."""
    if key_env is None:
        return None
    if not environ.get(key_env):
        raise SkillcError(
            f"the key of model `{model.role}` (`{model.model}`) is missing: `{key_env}` is not set",
            hint=f"export {key_env}=..., or {OFFLINE}",
        )
    return environ[key_env]


def declared_url(model: ModelPlan, environ: Mapping[str, str]) -> str | None:
    """Return the address that the program declares; raise `SkillcError` if its variable is not set."""
    if model.base_url is not None or model.base_url_env is None:
        return model.base_url
    if not environ.get(model.base_url_env):
        raise SkillcError(
            f"model `{model.role}` takes its address from `{model.base_url_env}`, which is not set",
            hint=f"export {model.base_url_env}=http://..., or {OFFLINE}",
        )
    return environ[model.base_url_env]


def secrets_of(model: ModelPlan, endpoint: Endpoint, environ: Mapping[str, str]) -> Iterator[Secret]:
    """Yield the secrets of a role: its key, what its address contains, and the variables that its command receives."""
    if endpoint.key is not None and endpoint.key != NO_KEY:
        yield Secret(endpoint.key_env or "key", endpoint.key)
    for value in _signs_of(endpoint.url or ""):
        yield Secret(model.base_url_env or "base_url", value)
    for name in model.exec.environment if model.exec is not None else ():
        yield Secret(name, environ.get(name, ""))


def _signs_of(url: str) -> Iterator[str]:
    """Yield user and password of an address, together and the password alone, and the secrets of its query."""
    parts = urlsplit(url if "://" in url else f"//{url}")
    signs = [unquote(sign) for sign in (parts.username or "", parts.password or "") if sign]
    yield from (":".join(signs), *signs[1:])
    yield from (value for name, value in parse_qsl(parts.query) if SECRET_NAME.search(name))


def variables_in(settings: Any) -> Iterator[str]:
    """Yield the names in each `env(...)` of a rollout's settings, at any depth."""
    match settings:
        case {"function": "env", "arguments": [str(name)]}:
            yield name
        case Mapping():
            for value in settings.values():
                yield from variables_in(value)
        case list() | tuple():
            for value in settings:
                yield from variables_in(value)


def secret_names(models: Iterable[ModelPlan]) -> frozenset[str]:
    """Return the variables that may contain keys of providers: those of the models, and all standard ones."""
    return frozenset({*KEY_VARIABLES.values(), *(model.key_env for model in models if model.key_env)})


def normalised(url: str, source: str) -> str:
    """Normalise an address: no default port, no closing slash, no user, password or fragment.

    A query is replaced by a digest without keys, because two queries may be two models. Raises `SkillcError` with the
    `source` if it is not an address.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError as problem:
        hint = "write it like `http://localhost:8000/v1`"
        raise SkillcError(f"{source} is not an address: {str(problem).lower()}", hint=hint) from None
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    try:
        port = parts.port
    except ValueError:
        port = None
    suffix = "" if port in (None, _PORTS.get(parts.scheme.lower())) else f":{port}"
    public = sorted(pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not SECRET_NAME.search(pair[0]))
    query = "?" + hashlib.sha256(json.dumps(public).encode()).hexdigest()[:12] if public else ""
    return f"{parts.scheme.lower()}://{host}{suffix}{parts.path.rstrip('/')}{query}"


def normalised_of(model: ModelPlan, url: str) -> str:
    """Normalise the address of a role, as `normalised`."""
    return normalised(url, f"`base_url` of model `{model.role}`")


def model_statements(model: str) -> str:
    """Return the statements of a new program for `target` and `optimizer` with one model, `provider/name`.

    skillc serves `hosted_vllm/NAME`; any other provider is called with its key. Raises `SkillcError` if `model` names
    no provider.
    """
    provider, slash, name = model.partition("/")
    if not provider or not slash or not name or set(model) & set('"\\\n'):
        raise SkillcError(
            f"`{model}` is not a model",
            hint=f"write provider/name, such as {PROVIDER}/Qwen/Qwen3-4B or openai/gpt-5-mini",
        )
    return _served_statements(model) if provider == PROVIDER else _called_statements(model, KEY_VARIABLES.get(provider))


def _served_statements(model: str) -> str:
    off = "chat_template_kwargs { enable_thinking = off }"
    # Qwen3's chat template reads this; other templates ignore it or have their own switch.
    thinking = off if "qwen3" in model.lower() else f"# {off}  # if it thinks before it answers"
    return f"""# skillc starts a vLLM server for this model. `skillc doctor` says whether it fits the GPU.
model target = "{model}" {{
  temperature = 0
  max_reply   = 500 tokens     # an answer; a longer one is cut and counts as no answer
  {thinking}
  serve = vllm {{
    max_len   = 16_384         # prompt and reply together; the optimizer's prompts are the longest
    gpu_share = 0.8            # leaves a fifth of the GPU to the desktop
    keep      = on             # the server stays for the next run; `skillc serve --stop` stops it
  }}
}}
# The same server writes the edits. A larger model writes better ones.
model optimizer = target {{
  temperature = 0.7
  max_reply   = 4_000 tokens
}}"""


def _called_statements(model: str, variable: str | None) -> str:
    key = f'key = env("{variable}")' if variable else '# key = env("NAME")  # the variable that holds its key'
    note = f"# The key is read from {variable}, and is in no file." if variable else "# A model of a provider."
    return f"""{note} `skillc plan` shows what a compile costs at most.
model target = "{model}" {{
  {key}
  max_reply = 2_000 tokens     # answer and thoughts together
}}
model optimizer = "{model}" {{
  {key}
  max_reply = 8_000 tokens
}}"""
