"""The server end to end: a real client, a spawned process, and what an editor would show."""

import time

import pytest
from editor import Editor, applied, cut, place_of
from lsprotocol import types
from pygls.exceptions import JsonRpcException

PROGRAM = """language 1

use std.gates
use "./lab.skill" as lab

task {
  input 质问: text { about = "精度 😀 as asked" }
  output answer: "yes" | "no"
}

skill decide {
  about = "Decide 😀."
  trainable section rules { limit = 300 tokens }
}

model target = "rulebook/v1"
model optimizer = target

data {
  source = "questions.jsonl"
  field country: text
}

/// 1 where the answer is right.
goal right = exact_match(answer)  # 😀
metric 精度 = exact_match(answer); metric both = 0.5 * 精度 + 0.5 * right

budget {
  epochs = 4
}

gate better = gates.strict(right)
gate firm = lab.firm(both, most = 5%)
"""
LIBRARY = """language 1

/// Hardly anyone is worse off.
gate firm(m: metric, most: share = 1%) = regressed(m) <= most
"""
ROWS = "".join(
    f'{{"质问": "question {i}", "answer": "{"yes" if i % 2 else "no"}", "country": "x"}}\n' for i in range(60)
)


@pytest.fixture
def files(editor, request):
    """A program, its library and its data, in a folder of the test's own."""
    folder = request.node.name.replace("[", "_").replace("]", "")[:60]
    editor.write(f"{folder}/lab.skill", LIBRARY)
    editor.write(f"{folder}/questions.jsonl", ROWS)
    editor.write(f"{folder}/main.skill", PROGRAM)
    main = f"{folder}/main.skill"
    editor.open(main)
    yield main
    editor.close(main)


def lab_of(main):
    return main.replace("main.skill", "lab.skill")


# ---- diagnostics ----------------------------------------------------------------------------------


def test_a_sound_program_has_no_errors(editor, files):
    found = editor.diagnostics(files)
    assert not [each for each in found if each.severity == types.DiagnosticSeverity.Error]
    assert editor.shown[editor.uri(files)].version == 1


def test_a_mistake_is_shown_at_its_place_in_utf_16(editor, files):
    text = PROGRAM.replace("0.5 * right", "0.5 * rihgt")
    editor.change(files, text)
    found = editor.diagnostics(files, lambda each: each)
    error = next(each for each in found if each.severity == types.DiagnosticSeverity.Error)
    assert cut(text, error.range) == "rihgt"
    assert error.code == "SK204"
    assert error.source == "skillc"
    assert error.message.startswith("unknown name `rihgt`\ndid you mean `right`?")
    assert editor.shown[editor.uri(files)].version == editor.versions[editor.uri(files)]


def test_what_is_unused_is_marked_so(editor, files):
    text = PROGRAM.replace("use std.gates\n", "use std.gates\nuse std.text as words\n")
    editor.change(files, text)
    found = editor.diagnostics(files, lambda each: any(d.code == "SK109" for d in each))
    note = next(each for each in found if each.code == "SK109")
    assert note.tags == (types.DiagnosticTag.Unnecessary,)
    assert note.severity == types.DiagnosticSeverity.Information


def test_related_places_are_told_also_in_other_files(editor, files):
    editor.open(lab_of(files), LIBRARY + "metric (\n")
    found = editor.diagnostics(files, lambda each: any(d.code == "SK106" for d in each))
    related = next(each for each in found if each.code == "SK106").related_information
    assert related[0].location.uri == editor.uri(lab_of(files))
    assert related[0].location.range.start.line == LIBRARY.count("\n")
    editor.close(lab_of(files))
    editor.diagnostics(files, lambda each: not any(d.code == "SK106" for d in each))


def test_a_change_of_a_used_file_is_seen_before_it_is_saved(editor, files):
    editor.open(lab_of(files))
    editor.diagnostics(lab_of(files))
    editor.change(lab_of(files), LIBRARY.replace("gate firm", "gate firmer"))
    found = editor.diagnostics(files, lambda each: any(d.code == "SK105" for d in each))
    assert any("`lab` has no function `firm`" in each.message for each in found)
    editor.change(lab_of(files), LIBRARY)
    editor.diagnostics(files, lambda each: not any(d.code == "SK105" for d in each))
    editor.close(lab_of(files))


def test_a_change_on_the_disk_is_seen_when_the_editor_tells(editor, files):
    editor.diagnostics(files)
    editor.write(lab_of(files), LIBRARY.replace("gate firm", "gate other_name"))
    change = types.FileEvent(editor.uri(lab_of(files)), types.FileChangeType.Changed)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))
    editor.diagnostics(files, lambda each: any(d.code == "SK105" for d in each))
    assert any(each.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES for each in editor.registrations)


def test_closing_clears(editor, files):
    name = files.replace("main.skill", "broken.skill")
    editor.open(name, "language 1\nmetric m = unknown_thing\n")
    assert editor.diagnostics(name, lambda each: each)
    uri = editor.close(name)
    editor.shown.pop(uri)
    assert editor.diagnostics(name) == ()


def test_only_the_last_of_rapid_edits_is_shown(editor, files):
    editor.diagnostics(files)
    seen = []
    uri = editor.uri(files)
    for length in range(0, len(PROGRAM), 23):
        editor.change(files, PROGRAM[:length])
    editor.change(files, PROGRAM + "metric m = unknown_thing\n")
    found = editor.diagnostics(files, lambda each: seen.append(editor.shown[uri].version) or each)
    assert [each.message.splitlines()[0] for each in found if each.code == "SK204"] == ["unknown name `unknown_thing`"]
    assert set(seen) == {editor.versions[uri]}, "no version between them was shown"


# ---- quick fixes ----------------------------------------------------------------------------------


def test_a_fix_that_is_taken_mends_the_program(editor, files):
    text = PROGRAM.replace("0.5 * right", "0.5 * rihgt")
    editor.change(files, text)
    error = editor.diagnostics(files, lambda each: any(d.code == "SK204" for d in each))
    error = next(each for each in error if each.code == "SK204")
    action = next(each for each in editor.actions(files, error.range) if each.edit and not each.is_preferred)
    assert action.title == "Change to `right`"
    assert action.diagnostics[0].code == "SK204"
    fixed = applied(text, action.edit.changes[editor.uri(files)])
    assert fixed == PROGRAM
    editor.change(files, fixed)
    editor.diagnostics(files, lambda each: not any(d.code == "SK204" for d in each))


def test_a_safe_fix_is_preferred_and_all_are_made_at_once(editor, files):
    text = 'langauge 1\nuse "./lab.skill"\noptimize { method = "gepa"; accept = "always" }\n'
    name = files.replace("main.skill", "fixes.skill")
    editor.open(name, text)
    editor.diagnostics(name, lambda each: each)
    everything = types.Range(types.Position(0, 0), types.Position(3, 0))
    quick = editor.actions(name, everything, [types.CodeActionKind.QuickFix])
    assert {each.kind for each in quick} == {types.CodeActionKind.QuickFix}
    assert any(each.is_preferred for each in quick)
    (every,) = editor.actions(name, everything, [types.CodeActionKind.SourceFixAll])
    assert every.kind == types.CodeActionKind.SourceFixAll
    fixed = applied(text, every.edit.changes[editor.uri(name)])
    assert "language 1" in fixed
    assert "method = gepa; accept = always" in fixed
    editor.change(name, fixed)
    after = editor.diagnostics(name, lambda each: not any(d.code == "SK201" for d in each))
    assert not {"SK313", "SK201"} & {each.code for each in after}
    editor.close(name)


def test_a_note_can_be_let_stand(editor, files):
    text = PROGRAM.replace("use std.gates\n", "use std.gates\nuse std.text as words  # for later\n")
    editor.change(files, text)
    found = editor.diagnostics(files, lambda each: any(d.code == "SK109" for d in each))
    note = next(each for each in found if each.code == "SK109")
    action = next(each for each in editor.actions(files, note.range) if "SK109" in each.title)
    line = applied(text, action.edit.changes[editor.uri(files)]).splitlines()[3]
    assert line.startswith("use std.text as words  # skillc: ignore[SK109] ")
    assert line.endswith("# for later")
    editor.change(files, applied(text, action.edit.changes[editor.uri(files)]))
    assert not {"SK109", "SK041", "SK042"} & {each.code for each in editor.diagnostics(files)}


def test_a_second_note_joins_the_first(editor, files):
    text = "language 1\nuse std.text as words  # skillc: ignore[SK504] shown\n"
    name = files.replace("main.skill", "two.skill")
    editor.open(name, text)
    found = editor.diagnostics(name, lambda each: any(d.code == "SK109" for d in each))
    note = next(each for each in found if each.code == "SK109")
    action = next(each for each in editor.actions(name, note.range) if "SK109" in each.title)
    assert "# skillc: ignore[SK504, SK109] shown" in applied(text, action.edit.changes[editor.uri(name)])
    editor.close(name)


def test_an_error_can_not_be_let_stand(editor, files):
    editor.change(files, PROGRAM.replace("0.5 * right", "0.5 * unknown_thing"))
    found = editor.diagnostics(files, lambda each: any(d.code == "SK204" for d in each))
    error = next(each for each in found if each.code == "SK204")
    assert not [each for each in editor.actions(files, error.range) if "stand" in each.title]


# ---- where things are -----------------------------------------------------------------------------


def test_definitions_lead_across_files_and_characters(editor, files):
    editor.diagnostics(files)
    found = editor.definition(files, *place_of(PROGRAM, "0.5 * 精|度 +"))
    assert cut(PROGRAM, found.range) == "精度"
    assert found.range.start.line == PROGRAM[: PROGRAM.index("metric 精度")].count("\n")
    found = editor.definition(files, *place_of(PROGRAM, "lab.fi|rm(both"))
    assert found.uri == editor.uri(lab_of(files))
    assert cut(LIBRARY, found.range) == "firm"
    found = editor.definition(files, *place_of(PROGRAM, "gates.str|ict"))
    assert found.uri.endswith("stdlib/gates.skill")
    found = editor.definition(files, *place_of(PROGRAM, "|lab.firm"))
    assert cut(PROGRAM, found.range) == "lab"
    assert editor.definition(files, *place_of(PROGRAM, "exact_|match(answer)  #")) is None


def test_references_of_other_programs_count(editor, files):
    other = files.replace("main.skill", "other.skill")
    text = PROGRAM.replace("gate firm =", "gate firm_too =")
    editor.write(other, text)
    found = editor.references(lab_of(files), *place_of(LIBRARY, "gate fi|rm(m"))
    assert sorted(each.uri for each in found) == sorted(
        [editor.uri(lab_of(files)), editor.uri(files), editor.uri(other)]
    )
    assert len(editor.references(files, *place_of(PROGRAM, "goal rig|ht ="))) == 3
    assert len(editor.references(files, *place_of(PROGRAM, "goal rig|ht ="), declaration=False)) == 2


def test_a_rename_is_applied_and_the_programs_are_as_sound_as_before(editor, files):
    before = [each.code for each in editor.diagnostics(files)]
    edit = editor.rename(files, *place_of(PROGRAM, "lab.fi|rm(both"), "steady")
    texts = {editor.uri(files): PROGRAM, editor.uri(lab_of(files)): LIBRARY}
    assert set(edit.changes) == set(texts)
    after = {uri: applied(text, edit.changes[uri]) for uri, text in texts.items()}
    assert "lab.steady(both" in after[editor.uri(files)]
    editor.write(lab_of(files), after[editor.uri(lab_of(files))])
    editor.change(files, after[editor.uri(files)])
    assert [each.code for each in editor.diagnostics(files)] == before
    edit = editor.rename(files, *place_of(PROGRAM, "metric 精|度 ="), "准确")
    assert applied(PROGRAM, edit.changes[editor.uri(files)]) == PROGRAM.replace("精度 =", "准确 =").replace(
        "0.5 * 精度", "0.5 * 准确"
    )


def test_a_rename_that_can_not_be_says_why(editor, files):
    for marked, new, why in (
        ("exact_|match(answer)  #", "x", "word of the language"),
        ("gates.str|ict", "x", "standard library"),
        ("goal rig|ht =", "answer", "a field and a metric"),
        ("goal rig|ht =", "a b", "is not a name"),
    ):
        with pytest.raises(JsonRpcException, match=why):
            editor.rename(files, *place_of(PROGRAM, marked), new)
    with pytest.raises(JsonRpcException, match="word of the language"):
        line, character = place_of(PROGRAM, "|budget {")
        editor.ask("textDocument/prepareRename", editor.at(files, line, character, types.PrepareRenameParams))
    line, character = place_of(PROGRAM, "goal rig|ht =")
    found = editor.ask("textDocument/prepareRename", editor.at(files, line, character, types.PrepareRenameParams))
    assert found.placeholder == "right"


def test_occurrences_in_the_file_are_shown(editor, files):
    line, character = place_of(PROGRAM, "goal rig|ht =")
    found = editor.ask(
        "textDocument/documentHighlight", editor.at(files, line, character, types.DocumentHighlightParams)
    )
    assert [cut(PROGRAM, each.range) for each in found] == ["right"] * 3
    assert found[0].kind == types.DocumentHighlightKind.Write


def test_the_outline_is_a_tree(editor, files):
    found = editor.about("textDocument/documentSymbol", files, types.DocumentSymbolParams)
    names = [each.name for each in found]
    assert names[:4] == ["gates", "lab", "task", "decide"]
    task = found[2]
    assert [child.name for child in task.children] == ["质问", "answer"]
    skill = found[3]
    assert [(child.name, child.detail) for child in skill.children] == [("rules", "trainable section")]
    for each in found:
        assert each.range.start <= each.selection_range.start
        assert each.selection_range.end <= each.range.end


def test_symbols_of_the_workspace(editor, files):
    found = editor.ask("workspace/symbol", types.WorkspaceSymbolParams(query="frm"))
    assert any(each.name == "firm" and each.location.uri == editor.uri(lab_of(files)) for each in found)
    assert all("f" in each.name.lower() for each in found)


def test_folds_and_links(editor, files):
    folds = editor.about("textDocument/foldingRange", files, types.FoldingRangeParams)
    lines = PROGRAM.splitlines()
    assert {lines[each.start_line] for each in folds} >= {"task {", "skill decide {", "data {", "budget {"}
    assert all(not lines[each.end_line].startswith("}") for each in folds)
    links = editor.about("textDocument/documentLink", files, types.DocumentLinkParams)
    assert [cut(PROGRAM, each.range) for each in links] == ["std.gates", '"./lab.skill"']
    assert links[1].target == editor.uri(lab_of(files))


# ---- what things are ------------------------------------------------------------------------------


def waited_for(look, wanted):
    """What a hover says once the costs are known; the first ones may go without."""
    for _ in range(6000):
        found = look()
        if found is not None and wanted in found:
            return found
        time.sleep(0.05)
    return found


def test_hovers_tell_meaning_and_share_of_the_cost(editor, files):
    def look(marked):
        return lambda: editor.hover(files, *place_of(PROGRAM, marked))

    told = waited_for(look("goal rig|ht ="), "*cost*")
    assert "goal right = exact_match(answer)" in told
    assert "1 where the answer is right." in told
    assert "the goal, from 0 to 1" in told
    assert "calls (" in told
    assert "Hardly anyone is worse off." in look("lab.fi|rm(both")()
    assert "means `regressed(both) <= 5%`" in look("gate fi|rm =")()
    assert "the gates on validation" in look("gate bet|ter =")()
    assert "0 of 300 tokens used" in look("section ru|les {")()
    assert "passes over the training split" in look("  epo|chs = 4")()
    assert "value here: `4 epochs`" in look("  epo|chs = 4")()
    table = look("|budget {")()
    assert "| `epochs` | `4 epochs` | set here |" in table
    assert "| gate |" in table
    assert "price: free" in look("model tar|get =")()
    assert "from 0 to 1" in look("exact_|match(answer)  #")()
    assert "精度 😀 as asked" in look("input 质|问")()
    assert look('a|bout = "Decide 😀."')() is not None


def test_no_cost_is_told_where_the_data_can_not_be_read(editor, files):
    (editor.folder / files).with_name("questions.jsonl").unlink()
    for _ in range(3):
        assert "*cost*" not in editor.hover(files, *place_of(PROGRAM, "gate bet|ter ="))


def test_no_function_of_the_user_is_run(editor, files):
    trap = editor.folder / files.replace("main.skill", "trap.py")
    trap.write_text("import pathlib\npathlib.Path(__file__).with_suffix('.sprung').write_text('')\n")
    text = PROGRAM + 'metric odd = python("trap:run", low = 0, high = 1)\n'
    editor.change(files, text)
    editor.diagnostics(files)
    for _ in range(5):
        editor.hover(files, *place_of(text, "goal rig|ht ="))
        time.sleep(0.05)
    assert not trap.with_suffix(".sprung").exists()


def test_completion_behind_other_characters(editor, files):
    text = PROGRAM + "gate 好 = candidate.精度 >= 0.5 and candidate.\n"
    editor.change(files, text)
    found = editor.completion(files, *place_of(text, "0.5 and candidate.|\n"))
    assert set(found) == {"精度", "both", "right"}
    assert found["right"].text_edit.range.start == types.Position(*place_of(text, "0.5 and candidate.|\n"))
    text = PROGRAM + "metric x = exact_match(\n"
    editor.change(files, text)
    assert set(editor.completion(files, *place_of(text, "metric x = exact_match(|\n"))) == {"answer"}
    line, character = place_of(text, "metric x = exact_match(|\n")
    found = editor.ask("textDocument/signatureHelp", editor.at(files, line, character, types.SignatureHelpParams))
    assert found.signatures[0].label == "exact_match(output)"


def decoded(editor, text, data):
    """What each token covers, and what it is."""
    legend = editor.initialized.capabilities.semantic_tokens_provider.legend
    lines = text.split("\n")
    line = character = 0
    for i in range(0, len(data), 5):
        down, right, length, kind, modifiers = data[i : i + 5]
        line, character = line + down, right + (0 if down else character)
        units = lines[line].encode("utf-16-le")[character * 2 : (character + length) * 2]
        names = {name for bit, name in enumerate(legend.token_modifiers) if modifiers >> bit & 1}
        yield units.decode("utf-16-le"), legend.token_types[kind], names


def test_semantic_tokens_cover_the_words(editor, files):
    found = editor.about("textDocument/semanticTokens/full", files, types.SemanticTokensParams)
    tokens = list(decoded(editor, PROGRAM, found.data))
    assert ("goal", "keyword", set()) in tokens
    assert ("right", "variable", {"declaration"}) in tokens
    assert ("精度", "variable", {"declaration"}) in tokens
    assert ("质问", "property", {"declaration"}) in tokens
    assert ("# 😀", "comment", set()) in tokens
    assert ("/// 1 where the answer is right.", "comment", {"documentation"}) in tokens
    assert ("firm", "function", set()) in tokens
    assert ("lab", "namespace", {"declaration"}) in tokens
    assert ("300", "number", set()) in tokens
    assert ("tokens", "type", {"defaultLibrary"}) in tokens
    words = [text for text, _, _ in tokens]
    assert all(text == text.strip() and text for text in words)
    part = types.Range(types.Position(0, 0), types.Position(3, 0))
    some = editor.about("textDocument/semanticTokens/range", files, types.SemanticTokensRangeParams, range=part)
    assert len(some.data) < len(found.data)
    assert words[: len(some.data) // 5] == [text for text, _, _ in decoded(editor, PROGRAM, some.data)]


# ---- whatever comes -------------------------------------------------------------------------------

HOSTILE = [
    "",
    "\0",
    "\ufefflanguage 1\n",
    "PK\x03\x04",
    '"""',
    "(" * 5000,
    "{" * 5000,
    "a" * 100_000,
    "metric m = " + "-" * 3000 + "1",
    "\r" * 300,
    "\u202elanguage 1\u2066\n",
    'use "\0.skill" as x\nuse "../../../etc/passwd" as y\nuse std.nothing\n',
    "language 1\r\nmetric 😀 = 1\r\nmetric m = “x”\r\n",
    "gate g = " + "f(" * 200,
    'language 1\nuse "./hostile.skill" as me\n',
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_text_ends_the_server(editor, number):
    name = "hostile.skill"
    uri = editor.open(name, HOSTILE[number])
    editor.diagnostics(name)
    line = types.Position(0, 3)
    for method, params in (
        ("textDocument/hover", types.HoverParams),
        ("textDocument/completion", types.CompletionParams),
        ("textDocument/signatureHelp", types.SignatureHelpParams),
        ("textDocument/definition", types.DefinitionParams),
        ("textDocument/documentHighlight", types.DocumentHighlightParams),
    ):
        editor.ask(method, params(types.TextDocumentIdentifier(uri), line))
    for method, params in (
        ("textDocument/documentSymbol", types.DocumentSymbolParams),
        ("textDocument/foldingRange", types.FoldingRangeParams),
        ("textDocument/semanticTokens/full", types.SemanticTokensParams),
        ("textDocument/documentLink", types.DocumentLinkParams),
    ):
        assert editor.about(method, name, params) is not None
    editor.actions(name, types.Range(types.Position(0, 0), types.Position(9, 9)))
    editor.close(name)
    assert editor.process.returncode is None


def test_questions_about_unknown_documents_and_places_are_answered(editor):
    for name in ("nowhere/missing.skill", "untitled:Untitled-1", "http://example.invalid/x.skill"):
        assert editor.hover(name, 0, 0) is None
        assert editor.references(name, 5, 5) == []
        assert editor.actions(name, types.Range(types.Position(0, 0), types.Position(1, 1))) == []
    name = "place.skill"
    editor.open(name, "language 1\n")
    editor.diagnostics(name)
    assert editor.hover(name, 4_000, 4_000) is None
    editor.completion(name, 4_000, 4_000)
    editor.close(name)


def test_a_document_that_was_never_saved(editor, files):
    text = "language 1\nuse std.gates\nmetric m = unknown_thing\n"
    uri = "untitled:Untitled-2"
    editor.open(uri, text)
    found = editor.diagnostics(uri, lambda each: each)
    assert any(each.code == "SK204" for each in found)
    assert editor.definition(uri, *place_of(text, "met|ric m")) is None
    assert "std" in editor.completion(uri, 1, 4)
    editor.close(uri)


def test_a_folder_with_an_odd_name(editor):
    name = "odd name#ü 100%/q?.skill" if editor.folder.drive == "" else "odd name#ü/q.skill"
    text = 'language 1\nuse "./lib é.skill" as lib\nbudget = lib.nightly\n'
    editor.write(name, text)
    editor.write(f"{name.rpartition('/')[0]}/lib é.skill", "language 1\nbudget nightly { cost = $2 }\n")
    editor.open(name)
    editor.diagnostics(name)
    found = editor.definition(name, *place_of(text, "lib.night|ly"))
    assert found.uri == editor.uri(f"{name.rpartition('/')[0]}/lib é.skill")
    editor.close(name)


def test_other_units_are_agreed_on(tmp_path):
    editor = Editor(tmp_path, encodings=[types.PositionEncodingKind.Utf32]).start()
    assert editor.initialized.capabilities.position_encoding == types.PositionEncodingKind.Utf32
    text = "language 1\nmetric 精 = 1  # 😀😀\nrubric r = '😀'; metric m = unknown_thing\n".replace("'", '"')
    editor.open("p.skill", text)
    found = editor.diagnostics("p.skill", lambda each: each)
    error = next(each for each in found if each.code == "SK204")
    assert error.range.start == types.Position(2, len("rubric r = '😀'; metric m = "))
    assert editor.stop() == 0
    assert "this is a bug" not in editor.errors
