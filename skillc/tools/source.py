"""What `check` finds in an agent's tools: their functions, from the source text, and the names that a skill gives."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from skillc.diagnostics.diagnostic import Diagnostic, Label
from skillc.errors import SkillcError
from skillc.language.checked import Checked, Invocation, Items, Setting, of_kind
from skillc.language.rollouts import ACT, ENVIRONMENT, agent_block, rollout_kind, tool_names
from skillc.syntax.source import Source, Span

if TYPE_CHECKING:
    from skillc.document.skill import Mode

# Types whose schema has no description.
_PLAIN = frozenset(
    {"str", "int", "float", "bool", "list", "dict", "tuple", "set", "Any", "Literal", "Optional", "Union"}
)
ReadSource = Callable[[str], Source]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def tool_findings(checked: Checked, read: ReadSource) -> Iterator[Diagnostic]:
    """Yield what prevents the tools of a program from being used.

    `read` reads a file of the program's folder; it raises a SkillcError for a file that does not exist.
    """
    task = next(iter(of_kind(checked.entities, "task")), None)
    kind, setting = rollout_kind(task), (agent_block(task) or {}).get("tools")
    yield from _renamed(checked, setting)
    if setting is None or not isinstance(setting.value, Items):
        return
    seen: dict[str, str] = {}
    for item in setting.value.items:
        if not isinstance(item, Invocation) or item.function != "python":
            continue
        name = str(item.arguments[0])
        label = Label(setting.source, _place(setting, name, again=name in seen.values()))
        tool = name.rpartition(":")[2]
        if tool in seen:
            hint = "an agent calls a tool by its name: rename one of them, or remove it"
            yield Diagnostic("SK224", f"two tools are named `{tool}`, `{seen[tool]}` and `{name}`", label, hint=hint)
            continue
        seen[tool] = name
        tree, found = _definition(name, read)
        inside = kind == "environment"
        if inside and tool == ACT and isinstance(found, Function) and not _takes_environment(found):
            hint = f"rename the function, or let it act by a parameter `{ENVIRONMENT}`"
            yield Diagnostic("SK224", f"`{name}` has the name of the agent's action", label, hint=hint)
        for message, hint in _problems(name, tree, found, inside=inside):
            yield Diagnostic("SK223", message, label, hint=hint)


def _renamed(checked: Checked, tools: Setting | None) -> Iterator[Diagnostic]:
    """Yield what is wrong with the names that sections give to tools."""
    items = tools.value.items if tools is not None and isinstance(tools.value, Items) else ()
    skills = of_kind(checked.entities, "skill")
    for section in (child for skill in skills for child in skill.children_of("section")):
        setting = section.settings.get("rename")
        if setting is None or setting.value is not True:
            continue
        # Few programs rename tools, and every check runs this.
        from skillc.document.skill import Section
        from skillc.document.tool_lines import SECTION, name_problem

        label = Label(setting.source, setting.span)
        if not items:
            message, hint = "the program has no tools to rename", "declare them: `rollout = react { tools = [...] }`"
            yield Diagnostic("SK225", message, label, hint=hint)
        elif section.name != SECTION:
            message = f"the section `{section.name}` cannot rename tools, only the section `{SECTION}`"
            yield Diagnostic("SK225", message, label, hint=f"move `rename = on` to `trainable section {SECTION}`")
        else:
            # Only a run knows the tools of servers.
            mode: Mode = "trainable" if "trainable" in section.words else "frozen"
            problem = name_problem(Section(SECTION, mode, section.text), tool_names(items) or ())
            if problem is not None:
                yield Diagnostic("SK225", problem, label, hint="correct the line with the arrow")


def _takes_environment(function: Function) -> bool:
    return any(each.arg == ENVIRONMENT for each in (*function.args.args, *function.args.kwonlyargs))


def _place(setting: Setting, name: str, *, again: bool) -> Span:
    """The place of a name in the list, by default the whole setting; the last one if it is there again."""
    text = setting.source.text
    find = text.rfind if again else text.find
    start = find(f'"{name}"', setting.span.start, setting.span.end)
    return Span(start, start + len(name) + 2) if start >= 0 else setting.span


def _problems(name: str, tree: ast.Module | None, found: ast.stmt | None, *, inside: bool) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a function, each with the fix; nothing of a module outside of the program's folder."""
    module, _, function = name.partition(":")
    if not _is_name(name):
        yield f"`{name}` is not a function's name", 'write `python("module:function")`'
    elif isinstance(found, Function):
        yield from _lacks(name, found, inside=inside)
    elif tree is not None and found is None and not any(map(_imports_all, tree.body)):
        yield f"the module `{module}` has no function `{function}`", f"define it in `{module.replace('.', '/')}.py`"


def _is_name(name: str) -> bool:
    module, _, function = name.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), function))


def _imports_all(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*"


def _lacks(name: str, function: Function, *, inside: bool) -> Iterator[tuple[str, str]]:
    from skillc.tools.docstrings import lacks_docstring, lacks_name, lacks_texts, lacks_type, read_docstring

    texts = read_docstring(ast.get_docstring(function))
    if not texts.about:
        yield lacks_docstring(name)
    given = function.args
    for each in (*given.posonlyargs, *filter(None, (given.vararg, given.kwarg))):
        yield lacks_name(name, each.arg)
    # A tool that acts in an environment is given it by skillc.
    named = [each for each in (*given.args, *given.kwonlyargs) if not (inside and each.arg == ENVIRONMENT)]
    for each in named:
        if each.annotation is None:
            yield lacks_type(name, each.arg)
    silent = [each.arg for each in named if each.arg not in texts.arguments and _is_plain(each.annotation)]
    if texts.about and silent:
        yield lacks_texts(name, silent)


def _is_plain(annotation: ast.expr | None) -> bool:
    """Whether a type cannot describe itself, as `Annotated[str, Field(description=...)]` or a model does."""
    names = {each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)} if annotation is not None else {""}
    return names <= _PLAIN


def _definition(name: str, read: ReadSource) -> tuple[ast.Module | None, ast.stmt | None]:
    """Return the module of a function in the program's folder, and the statement that defines it, as far as found."""
    if not _is_name(name):
        return None, None
    module, _, function = name.partition(":")
    path = module.replace(".", "/")
    for file in (f"{path}.py", f"{path}/__init__.py"):
        try:
            tree = ast.parse(read(file).text)
        except (SkillcError, SyntaxError, ValueError, RecursionError):
            continue
        return tree, next((each for each in _statements(tree) if _defines(each, function)), None)
    return None, None


def _statements(tree: ast.Module) -> Iterable[ast.stmt]:
    """The statements of a module, those of `if` and `try` included, the last first: its definition is in force."""
    waiting = list(tree.body)
    found: list[ast.stmt] = []
    while waiting:
        each = waiting.pop(0)
        found.append(each)
        for field in ("body", "orelse", "finalbody", "handlers"):
            if isinstance(each, ast.If | ast.Try | ast.With | ast.ExceptHandler):
                waiting += getattr(each, field, [])
    return reversed(found)


def _defines(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, Function | ast.ClassDef):
        return statement.name == name
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return any((each.asname or each.name) == name for each in statement.names)
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(isinstance(each, ast.Name) and each.id == name for target in targets for each in ast.walk(target))
