"""What skillc uses of litellm. A litellm that lacks one of these fails here, with its name."""

from __future__ import annotations

import ast
import inspect
import logging
from pathlib import Path

import pytest

import skillc
from skillc.models import failures
from skillc.models.backends import litellm as backend

PACKAGE = Path(skillc.__file__).parent
FILE = Path(backend.__file__)

# Names that are called, read or set.
ATTRIBUTES = {
    "acompletion",
    "drop_params",
    "in_memory_llm_clients_cache",
    "provider_list",
    "suppress_debug_info",
    "telemetry",
}
# Of its cache of clients.
CACHE = {"cache_dict", "delete_cache", "update_cache_key_with_event_loop"}
IMPORTS = {"litellm", "openai.resources.chat", "litellm.llms.custom_httpx.aiohttp_transport"}
# Arguments of `acompletion`; others reach the provider as they are.
ARGUMENTS = {"model", "messages", "timeout", "api_key", "tools", "response_format", "max_tokens", "seed"}
# Exceptions that `failures.py` tells errors apart by.
EXCEPTIONS = {
    "APIConnectionError",
    "APIError",
    "APIResponseValidationError",
    "AuthenticationError",
    "BadGatewayError",
    "BudgetExceededError",
    "ContentPolicyViolationError",
    "ContextWindowExceededError",
    "InternalServerError",
    "JSONSchemaValidationError",
    "NotFoundError",
    "PermissionDeniedError",
    "RateLimitError",
    "ServiceUnavailableError",
    "Timeout",
}
# Fields of a model in the price list.
PRICES = {"litellm_provider", "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"}


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    found = plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name for name in found if name.partition(".")[0] in ("litellm", "openai")}


def test_one_file_imports_litellm_and_uses_what_is_listed_here() -> None:
    assert [path for path in PACKAGE.rglob("*.py") if imported(path)] == [FILE]
    assert imported(FILE) == IMPORTS
    used = {
        node.attr
        for node in ast.walk(ast.parse(FILE.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("litellm", "load_litellm()")
    }
    assert used == ATTRIBUTES


def test_litellm_has_what_is_listed_here() -> None:
    litellm = backend.load_litellm()
    lacking = {name for name in ATTRIBUTES if not hasattr(litellm, name)}
    assert not lacking, f"this litellm has no {lacking}"
    lacking = {name for name in CACHE if not hasattr(litellm.in_memory_llm_clients_cache, name)}
    assert not lacking, f"its cache of clients has no {lacking}"
    arguments = inspect.signature(litellm.acompletion).parameters
    assert set(arguments) >= ARGUMENTS, f"`acompletion` takes no {ARGUMENTS - set(arguments)}"
    assert any(each.kind is each.VAR_KEYWORD for each in arguments.values()), "`acompletion` takes no further arguments"


def test_litellm_raises_the_errors_by_whose_names_failures_are_told_apart() -> None:
    litellm = backend.load_litellm()
    lacking = {name for name in EXCEPTIONS if not hasattr(litellm, name)}
    assert not lacking, f"litellm has no {lacking}; see the names in `failures.py`"
    texts = [node.value for node in ast.walk(ast.parse(inspect.getsource(failures))) if isinstance(node, ast.Constant)]
    assert set(texts) >= EXCEPTIONS


def test_requests_pass_the_transport_that_is_watched() -> None:
    backend.load_litellm()
    from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport

    assert getattr(LiteLLMAiohttpTransport.handle_async_request, "watched", False)


def test_the_data_files_are_found() -> None:
    prices = backend.price_list()
    assert prices, "litellm's price list is not where it was, so that no price is known"
    assert set(prices["gpt-4o-mini"]) >= PRICES


@pytest.mark.parametrize("name", ["LiteLLM", "LiteLLM Router", "LiteLLM Proxy"])
def test_its_loggers_keep_quiet(name: str) -> None:
    backend.load_litellm()
    assert logging.getLogger(name).level == logging.ERROR
