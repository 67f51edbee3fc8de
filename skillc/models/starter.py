"""The model statements of a first program: `skillc new --model`."""

from __future__ import annotations

from skillc.errors import SkillcError
from skillc.models.endpoint import KEYS
from skillc.models.serving.options import PROVIDER


def model_statements(model: str) -> str:
    """The statements for `target` and `optimizer` that begin with this model, as a program has them.

    Args:
        model: `provider/name`. `hosted_vllm/NAME` is served by skillc, any other provider is called with its key.

    Raises:
        SkillcError: it has no provider.
    """
    provider, slash, name = model.partition("/")
    if not provider or not slash or not name or set(model) & set('"\\\n'):
        raise SkillcError(
            f"`{model}` is no model", hint=f"write provider/name, such as {PROVIDER}/Qwen/Qwen3-4B or openai/gpt-5-mini"
        )
    return _served(model) if provider == PROVIDER else _called(model, KEYS.get(provider))


def _served(model: str) -> str:
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


def _called(model: str, variable: str | None) -> str:
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
