"""The forms in which hosts read a skill: their files, and what each host puts in front of its model.

All functions are pure: files in, files out. The body of SKILL.md is copied byte by byte into every form.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from skillc.artifact_paths import SKILL_FILE
from skillc.dataclass import dataclass
from skillc.document.skill_md import frontmatter_and_body, to_yaml
from skillc.skill_files import decoded
from skillc.text import listed

Load = Literal["always", "on_demand"]
Files = Mapping[str, bytes]

HERMES_LISTED = 60
"""The characters of a description that Hermes shows in its list of skills."""

# Keys of a frontmatter that only Claude Code acts on, https://code.claude.com/docs/en/skills#frontmatter-reference
_CLAUDE_KEYS = (
    *("agent", "allowed-tools", "argument-hint", "arguments", "context", "disable-model-invocation"),
    *("disallowed-tools", "effort", "hooks", "model", "paths", "shell", "user-invocable", "when_to_use"),
)
# The line that closes a frontmatter.
_FENCE = re.compile(r"(?<=\n)---[ \t]*\r?\n")
# What Claude Code replaces in a body, https://code.claude.com/docs/en/skills#available-string-substitutions
_SUBSTITUTED = re.compile(r"\$ARGUMENTS(?:\[\d+\])?|\$\d+|\$\{CLAUDE_[A-Z_]+\}|(?:^|(?<=\s))!`[^`\n]+`")
# What Gemini CLI imports into a context file, https://geminicli.com/docs/reference/memport
_IMPORTED = re.compile(r"(?:^|(?<=\s))@[\w~./-]+")


@dataclass(frozen=True, slots=True)
class CompiledSkill:
    """The folder of a compiled skill, in memory.

    Attributes:
        files: by their paths in the folder; one is SKILL.md.
        keys: its frontmatter.
        body: of SKILL.md, below the frontmatter.
    """

    name: str
    about: str
    files: Files
    keys: Mapping[str, Any]
    body: str

    @classmethod
    def of(cls, files: Files) -> CompiledSkill:
        """Read the files of a valid skill.

        Raises:
            SkillcError: SKILL.md is not UTF-8, or its frontmatter is no YAML mapping.
        """
        keys, body = frontmatter_and_body(decoded(SKILL_FILE, files[SKILL_FILE], "utf-8-sig"))
        return cls(str(keys.get("name", "")), str(keys.get("description", "")), files, keys, body)

    @property
    def text(self) -> str:
        """The whole SKILL.md."""
        return self.files[SKILL_FILE].decode("utf-8-sig")

    @property
    def digest(self) -> str:
        """The hex sha256 of all files with their paths."""
        each = (f"{name}\0{hashlib.sha256(content).hexdigest()}\n" for name, content in sorted(self.files.items()))
        return hashlib.sha256("".join(each).encode()).hexdigest()

    @property
    def version(self) -> str:
        """A semantic version that differs where the files do, for hosts that update by version."""
        return f"1.0.0+{self.digest[:12]}"


@dataclass(frozen=True, slots=True)
class Presentation:
    """What a host puts in front of its model.

    Attributes:
        load: whether the text is there from the beginning, or the model opens it by its description.
        about: the description in the list of skills; empty where there is no list.
        text: that the model reads.
    """

    load: Load
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Form:
    """A form that a host reads.

    Attributes:
        title: of the host.
        source: the page that specifies the form.
        files: make its files, by their paths below the output folder.
        present: what the host puts in front of its model.
        notes: what the form cannot say, a sentence each.
        altered: parts of the body that the host replaces before its model reads it.
        use: the command or the step that makes the host read the output folder; `{}` is the folder.
    """

    name: str
    title: str
    source: str
    files: Callable[[CompiledSkill], dict[str, bytes]]
    present: Callable[[CompiledSkill], Presentation]
    notes: Callable[[CompiledSkill], Iterator[str]]
    use: str
    altered: Callable[[CompiledSkill], tuple[str, ...]] = lambda skill: ()


# ---- files ----------------------------------------------------------------------------------------


def _below(folder: str, files: Files) -> dict[str, bytes]:
    return {f"{folder}/{name}": content for name, content in files.items()}


def _json(value: Mapping[str, object]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _manifest(skill: CompiledSkill, **more: object) -> bytes:
    """Return a manifest of a plugin or an extension, with license and author where the frontmatter has them."""
    found: dict[str, object] = {"name": skill.name, "version": skill.version, "description": skill.about, **more}
    return _json(found)


def _claude_plugin(skill: CompiledSkill) -> dict[str, bytes]:
    more: dict[str, object] = {}
    metadata = skill.keys.get("metadata")
    author = metadata.get("author") if isinstance(metadata, dict) else None
    if isinstance(author, str):
        more["author"] = {"name": author}
    if isinstance(skill.keys.get("license"), str):
        more["license"] = skill.keys["license"]
    return {".claude-plugin/plugin.json": _manifest(skill, **more), **_below(f"skills/{skill.name}", skill.files)}


def _codex(skill: CompiledSkill) -> dict[str, bytes]:
    """The folder and, beside SKILL.md, `agents/openai.yaml` with the policy that the frontmatter asks for."""
    explicit = skill.keys.get("disable-model-invocation") is True
    title = skill.name.replace("-", " ").capitalize()
    short = skill.about if len(skill.about) <= 64 else skill.about[:63].rstrip() + "…"
    lines = ["interface:", f"  display_name: {to_yaml(title)}", f"  short_description: {to_yaml(short)}"]
    lines += ["policy:", f"  allow_implicit_invocation: {'false' if explicit else 'true'}"]
    own = {"agents/openai.yaml": ("\n".join(lines) + "\n").encode()}
    return _below(f".agents/skills/{skill.name}", {**own, **skill.files})


def _gemini(skill: CompiledSkill) -> dict[str, bytes]:
    return {"gemini-extension.json": _manifest(skill), **_below(f"skills/{skill.name}", skill.files)}


def _gemini_context(skill: CompiledSkill) -> dict[str, bytes]:
    others = {name: content for name, content in skill.files.items() if name != SKILL_FILE}
    manifest = _manifest(skill, contextFileName="GEMINI.md")
    return {"gemini-extension.json": manifest, "GEMINI.md": skill.body.encode(), **others}


def _hermes(skill: CompiledSkill) -> dict[str, bytes]:
    """The folder, with tags in the frontmatter unless it has its own metadata."""
    files = dict(skill.files)
    if "metadata" not in skill.keys:
        tags = "".join(f"      - {to_yaml(word)}\n" for word in dict.fromkeys([*skill.name.split("-"), skill.name]))
        # A list in brackets would be refused by the reference validator.
        block = f"metadata:\n  hermes:\n    tags:\n{tags}---\n"
        fence = _FENCE.search(skill.text, 3)
        if fence is not None:
            files[SKILL_FILE] = f"{skill.text[: fence.start()]}{block}{skill.text[fence.end() :]}".encode()
    return _below(skill.name, files)


def _mcp(skill: CompiledSkill) -> dict[str, bytes]:
    args = ["emit", f"skills/{skill.name}", "--form", "mcp", "--serve"]
    servers = {"mcpServers": {skill.name: {"type": "stdio", "command": "skillc", "args": args}}}
    return {".mcp.json": _json(servers), **_below(f"skills/{skill.name}", skill.files)}


def _agents_md(skill: CompiledSkill) -> dict[str, bytes]:
    others = {name: content for name, content in skill.files.items() if name != SKILL_FILE}
    return {"AGENTS.md": skill.body.encode(), **others}


# ---- what the model reads -------------------------------------------------------------------------


def _opened_body(skill: CompiledSkill) -> Presentation:
    return Presentation("on_demand", skill.about, skill.body)


def _opened_file(skill: CompiledSkill) -> Presentation:
    return Presentation("on_demand", skill.about, skill.text)


def _in_context(skill: CompiledSkill) -> Presentation:
    return Presentation("always", "", skill.body)


def _opened_in_hermes(skill: CompiledSkill) -> Presentation:
    about = skill.about
    listed_ = about if len(about) <= HERMES_LISTED else about[: HERMES_LISTED - 3] + "..."
    return Presentation("on_demand", listed_, _hermes(skill)[f"{skill.name}/{SKILL_FILE}"].decode())


# ---- what a form cannot say -----------------------------------------------------------------------


def _ignored(skill: CompiledSkill, title: str, *known: str) -> Iterator[str]:
    found = [key for key in _CLAUDE_KEYS if key in skill.keys and key not in known]
    if found:
        yield f"{title} ignores {listed(found, 'and')} of the frontmatter"


def _claude_notes(skill: CompiledSkill) -> Iterator[str]:
    replaced = _claude_altered(skill)
    if replaced:
        names = listed(replaced[:5], "and")
        yield f"Claude Code replaces {names} in the body before its model reads it"


def _claude_altered(skill: CompiledSkill) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match[0].strip() for match in _SUBSTITUTED.finditer(skill.body)))


def _codex_notes(skill: CompiledSkill) -> Iterator[str]:
    if "agents/openai.yaml" in skill.files:
        yield "the skill's own `agents/openai.yaml` is kept"
    yield from _ignored(skill, "Codex", "disable-model-invocation")


def _gemini_notes(skill: CompiledSkill) -> Iterator[str]:
    yield from _ignored(skill, "Gemini CLI")


def _hermes_notes(skill: CompiledSkill) -> Iterator[str]:
    if len(skill.about) > HERMES_LISTED:
        yield (
            f"Hermes lists the first {HERMES_LISTED} of {len(skill.about)} characters of the description: "
            f"`{_opened_in_hermes(skill).about}`"
        )
    if "metadata" in skill.keys:
        yield "the skill's own `metadata` is kept, so no tags for Hermes are added"
    yield from _ignored(skill, "Hermes")


def _mcp_notes(skill: CompiledSkill) -> Iterator[str]:
    # https://modelcontextprotocol.io/seps/2640-skills-extension, security considerations
    if "allowed-tools" in skill.keys:
        yield "hosts must ignore `allowed-tools` of a skill that arrives over MCP"
    yield from _ignored(skill, "a host of MCP skills without Claude's extensions", "allowed-tools")


def _context_notes(skill: CompiledSkill, file: str) -> Iterator[str]:
    yield f"`{file}` is always in the context: the description and the name of the skill are in no list"
    others = [name for name in skill.files if name != SKILL_FILE]
    if others:
        yield f"`{file}` reads no other file by itself; {len(others)} of the skill are beside it"
    yield from _ignored(skill, f"`{file}`")


def _agents_notes(skill: CompiledSkill) -> Iterator[str]:
    yield from _context_notes(skill, "AGENTS.md")


def _gemini_context_notes(skill: CompiledSkill) -> Iterator[str]:
    yield from _context_notes(skill, "GEMINI.md")
    found = _gemini_altered(skill)
    if found:
        names = listed(found[:5], "and")
        yield f"Gemini CLI reads {names} in GEMINI.md as the import of a file"


def _gemini_altered(skill: CompiledSkill) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match[0].strip() for match in _IMPORTED.finditer(skill.body)))


FORMS: Mapping[str, Form] = {
    form.name: form
    for form in (
        Form(
            "claude-plugin",
            "Claude Code, as a plugin",
            "https://code.claude.com/docs/en/plugins/manifest-reference",
            _claude_plugin,
            _opened_body,
            _claude_notes,
            "claude --plugin-dir {}",
            _claude_altered,
        ),
        Form(
            "codex",
            "Codex",
            "https://developers.openai.com/codex/skills",
            _codex,
            _opened_file,
            _codex_notes,
            "cd {} && codex",
        ),
        Form(
            "gemini",
            "Gemini CLI, as an extension with a skill",
            "https://geminicli.com/docs/extensions/reference",
            _gemini,
            _opened_body,
            _gemini_notes,
            "gemini extensions link {}",
        ),
        Form(
            "gemini-context",
            "Gemini CLI, as an extension with a context file",
            "https://geminicli.com/docs/extensions/reference",
            _gemini_context,
            _in_context,
            _gemini_context_notes,
            "gemini extensions link {}",
            _gemini_altered,
        ),
        Form(
            "hermes",
            "Hermes Agent",
            "https://hermes-agent.nousresearch.com/docs/developer-guide/creating-skills",
            _hermes,
            _opened_in_hermes,
            _hermes_notes,
            "copy the folder below {} to ~/.hermes/skills",
        ),
        Form(
            "mcp",
            "MCP, as `skill://` resources",
            "https://modelcontextprotocol.io/seps/2640-skills-extension",
            _mcp,
            _opened_file,
            _mcp_notes,
            "start a host in {}, which has `.mcp.json`",
        ),
        Form("agents-md", "AGENTS.md", "https://agents.md", _agents_md, _in_context, _agents_notes, "cd {}"),
    )
}
