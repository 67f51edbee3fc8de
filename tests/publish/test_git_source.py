"""A skill from a git repository: pinned, staged and rolled back as any other, and nothing of the repository is run."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.publish.git_address import check_address, check_folder, check_ref, is_inside
from skillc.publish.git_source import compiled_from
from skillc.publish.installing import add_from_git, install_all
from skillc.publish.kept import read_log
from skillc.publish.manifest import read_manifest
from skillc.publish.staging import Held, adopt, adopt_by_policy, current, rollback, stage
from tests.publish.shops import NAME, RULES, compile_as, skill_md

NEW = 'If the ticket mentions "refund", answer billing.'
PLACE = f".agents/skills/{NAME}"
FOLDER = f"skills/{NAME}"

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder, *words, **variables):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **variables}
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", "-C", folder, *who, *words], env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(work, *rules, **options):
    """Compile with these rules, commit and push; return the commit."""
    compile_as(work, *rules, **options)
    return push(work)


def push(work):
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "x")
    git(work, "push", "--quiet", "origin", "main")
    return git(work, "rev-parse", "HEAD")


@pytest.fixture
def shared(tmp_path):
    """A bare repository with one compiled skill, and a clone in which it is made."""
    bare, work = tmp_path / "shared.git", tmp_path / "work"
    for each in (bare, work):
        each.mkdir()
    git(bare, "init", "--quiet", "--bare")
    git(work, "init", "--quiet")
    git(work, "remote", "add", "origin", str(bare))
    git(work, "checkout", "--quiet", "-b", "main")
    first = commit(work, *RULES)
    return bare, work, first


def install(project, bare, folder=FOLDER, ref=None, **options):
    return add_from_git(project, str(bare), folder, ref, ["codex"], "project", by="ada", **options)


def text(project):
    return (project / PLACE / "SKILL.md").read_text()


def update(project):
    entry = read_manifest(project).entry(NAME)
    paths, found = compiled_from(project, entry)
    return stage(project, NAME, paths, by="ada", commit=found)


def test_a_skill_is_pinned_staged_adopted_and_rolled_back_with_its_commit(project, shared):
    bare, work, first = shared
    done = install(project, f"file://{bare}")
    assert done.verdict == "improved" and text(project) == skill_md(*RULES)
    entry = read_manifest(project).entry(NAME)
    assert (entry.git.url, entry.git.ref, entry.git.commit) == (f"file://{bare}", None, first)
    assert entry.source == FOLDER and f'commit = "{first}"' in (project / "skills.toml").read_text()
    assert update(project) is None

    second = commit(work, *RULES, NEW)
    install_all(project)
    # The pinned commit stays until a person adopts another one, whatever the policy is.
    assert text(project) == skill_md(*RULES) and read_manifest(project).entry(NAME).git.commit == first
    (project / "skills.toml").write_text((project / "skills.toml").read_text().replace('"person"', '"verdict"'))
    assert update(project).commit == second
    held = adopt_by_policy(project, NAME, by="ada")
    assert isinstance(held, Held) and any("another repository" in reason for reason in held.reasons)
    adopt(project, NAME, by="ada")
    assert text(project) == skill_md(*RULES, NEW) and read_manifest(project).entry(NAME).git.commit == second
    rollback(project, NAME, by="ada")
    assert text(project) == skill_md(*RULES) and read_manifest(project).entry(NAME).git.commit == first
    assert [each["commit"] for each in read_log(project, NAME)] == [first, second, first]
    # What was rolled back from is not staged again.
    assert update(project) is None


@pytest.mark.parametrize("kept", [True, False])
def test_a_clone_gets_the_pinned_version_also_if_it_was_not_committed(project, shared, kept):
    bare, work, _ = shared
    install(project, f"file://{bare}")
    commit(work, *RULES, NEW)
    shutil.rmtree(project / ".agents")
    shutil.rmtree(project / ".skillc")
    if not kept:
        shutil.rmtree(project / "skills.adopted")
    install_all(project)
    assert text(project) == skill_md(*RULES) and current(project, NAME) is not None
    assert (project / ".skillc/publish/git").exists() == (not kept)


def test_a_branch_a_tag_a_commit_and_a_path_beside_the_project(project, shared):
    bare, work, first = shared
    git(work, "tag", "-a", "v1", "-m", "x")
    git(work, "push", "--quiet", "origin", "v1")
    second = commit(work, *RULES, NEW)
    install(project, bare, None, "v1")
    entry = read_manifest(project).entry(NAME)
    assert entry.git.url == os.path.relpath(bare, project) and (entry.git.ref, entry.git.commit) == ("v1", first)
    with pytest.raises(SkillcError, match="has `route-tickets` from `skills/route-tickets` in"):
        install(project, bare, None, "main")
    for ref, wanted in (("main", second), (first, first), (None, second)):
        shutil.rmtree(project / ".agents")
        shutil.rmtree(project / "skills.adopted")
        (project / "skills.toml").unlink()
        install(project, bare, None, ref)
        assert read_manifest(project).entry(NAME).git.commit == wanted
    with pytest.raises(SkillcError, match="git cannot fetch `nowhere`"):
        install(project, bare, None, "nowhere")


def test_a_server_that_gives_no_single_commit_is_read_by_its_branches(project, shared, monkeypatch):
    bare, work, first = shared
    commit(work, *RULES, NEW)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.version")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "0")
    install(project, f"file://{bare}", FOLDER, first)
    assert read_manifest(project).entry(NAME).git.commit == first and text(project) == skill_md(*RULES)


# ---- what a repository may not do -------------------------------------------------------------------


def test_nothing_of_the_repository_is_run(project, shared, tmp_path):
    bare, work, _ = shared
    mark = tmp_path / "ran"
    hook = f"#!/bin/sh\ntouch {mark}\n"
    for name in ("post-checkout", "post-merge", "reference-transaction", "post-index-change", "pre-auto-gc"):
        for hooks in (work / ".git/hooks", bare / "hooks"):
            hooks.mkdir(exist_ok=True)
            (hooks / name).write_text(hook)
            (hooks / name).chmod(0o755)
    (work / ".gitattributes").write_text("* filter=evil diff=evil export-subst\n")
    (work / "skills" / "route_tickets.py").write_text(f"open({str(mark)!r}, 'w')\n")
    (work / ".gitmodules").write_text(f'[submodule "x"]\n\tpath = x\n\turl = "ext::touch {mark}"\n')
    push(work)
    mark.unlink(missing_ok=True)
    for name in ("filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv", "core.fsmonitor", "core.sshCommand"):
        git(bare, "config", name, f"touch {mark}")
    install(project, f"file://{bare}")
    assert text(project) == skill_md(*RULES) and not mark.exists()


def made(work, content, *words):
    """Return the object that git makes of a content."""
    done = subprocess.run(["git", "-C", work, *words], input=content, capture_output=True, check=True)
    return done.stdout.decode().strip()


def add_tree(work, name, mode, content):
    """Add an entry to the skill's tree that no ordinary `git add` would."""
    blob = git(work, "rev-parse", "HEAD") if mode == "160000" else made(work, content, "hash-object", "-w", "--stdin")
    kind = "commit" if mode == "160000" else "blob"
    lines = git(work, "ls-tree", f"HEAD:{FOLDER}") + f"\n{mode} {kind} {blob}\t{name}\n"
    tree = made(work, lines.encode(), "mktree", "--missing")
    lock = git(work, "ls-tree", "HEAD:skills", f"{NAME}.lock")
    tree = made(work, f"{lock}\n040000 tree {tree}\t{NAME}\n".encode(), "mktree")
    tree = made(work, f"040000 tree {tree}\tskills\n".encode(), "mktree")
    last = git(work, "commit-tree", tree, "-m", "x")
    git(work, "push", "--quiet", "--force", "origin", f"{last}:refs/heads/main")


@pytest.mark.parametrize(
    ("name", "mode", "problem"),
    [
        ("references.md", "120000", "is a link"),
        ("inner", "160000", "is a submodule"),
        ("..", "100644", "leaves its folder"),
        ("a\\b.md", "100644", "leaves its folder"),
        ("C:x.md", "100644", "leaves its folder"),
    ],
)
def test_links_submodules_and_paths_outside_the_folder_are_refused(project, shared, name, mode, problem):
    bare, work, _ = shared
    add_tree(work, name, mode, b"/etc/passwd")
    with pytest.raises(SkillcError, match=problem):
        install(project, f"file://{bare}")
    assert not (project / "skills.toml").exists() and not (project / PLACE).exists()


def test_large_files_lfs_pointers_and_bad_skills_are_refused(project, shared, monkeypatch):
    bare, work, _ = shared
    (work / FOLDER / "data.bin").write_bytes(b"x" * 2000)
    push(work)
    monkeypatch.setattr("skillc.publish.git_source.FILE_LIMIT", 1000)
    with pytest.raises(SkillcError, match="more than a skill may have"):
        install(project, bare)
    monkeypatch.undo()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"
    (work / FOLDER / "data.bin").write_text(pointer)
    push(work)
    with pytest.raises(SkillcError, match="is in Git LFS"):
        install(project, bare)
    (work / FOLDER / "data.bin").unlink()
    (work / FOLDER / "SKILL.md").write_text("no frontmatter")
    push(work)
    with pytest.raises(SkillcError, match="agents cannot load"):
        install(project, bare)
    with pytest.raises(SkillcError, match="has no skill in `skills/other`"):
        install(project, bare, "skills/other")


def test_lock_and_quarantine_are_checked(project, shared):
    bare, work, _ = shared
    paths = compile_as(work, *RULES)
    paths.skill.write_text(paths.skill.read_text() + "- By hand.\n")
    push(work)
    assert any("was edited since the compile" in note for note in install(project, bare, dry_run=True).notes)
    paths.lock.write_text("{")
    push(work)
    with pytest.raises(SkillcError, match="lock"):
        install(project, bare)
    compile_as(work, *RULES)
    lock = json.loads(paths.lock.read_text())
    from skillc.plan.lock import text_key

    lock["sessions"] = {text_key(RULES[0]): ["openai:x:1"]}
    paths.lock.write_text(json.dumps(lock))
    (work / "skills" / f"{NAME}.quarantine.json").write_text('{"format_version": 1, "withdrawn": ["openai:x:1"]}')
    push(work)
    with pytest.raises(SkillcError, match="is quarantined"):
        install(project, bare)
    assert not (project / "skills.toml").exists()


HOSTILE = (
    "--upload-pack=touch x",
    "-oProxyCommand=x",
    "ext::sh -c touch% x",
    "fd::17",
    "ssh://-oProxyCommand=touch/x",
    "ssh://git@-oProxyCommand=touch/x",
    "-oProxyCommand=touch:x",
    "git@-oProxyCommand=touch:x",
    "ftp://example.com/x",
    "https://example.com/x\n--upload-pack=y",
    "",
    " ",
)


@pytest.mark.parametrize("address", HOSTILE)
def test_an_address_that_git_would_misread_is_refused(project, address):
    with pytest.raises(SkillcError, match="the repository"):
        check_address(address)
    (project / "skills.toml").write_text(
        f"[skills.{NAME}]\nfrom = {json.dumps(FOLDER)}\ngit = {json.dumps(address)}\ncommit = '{'0' * 40}'\n"
    )
    with pytest.raises(SkillcError):
        install_all(project)
    assert not (project / ".skillc").exists() and not (project / "x").exists()


@pytest.mark.parametrize(
    "ref", ["-x", "--upload-pack=x", "a..b", "a:b", "+a", "a b", "a^{}", "", "a\n", "x.lock", "@{-1}"]
)
def test_a_revision_that_git_would_misread_is_refused(ref):
    with pytest.raises(SkillcError, match="is no branch, tag or commit"):
        check_ref(ref)


def test_what_is_right_is_taken():
    for address in (
        "https://example.com/a.git",
        "git@example.com:a/b.git",
        "../a b",
        "/srv/a",
        "ssh://git@h:22/a",
        "C:\\a",
    ):
        assert check_address(address) == address
    for ref in ("main", "v1.2", "feature/x-1", "a" * 40):
        assert check_ref(ref) == ref
    assert check_folder("./skills/x/") == "skills/x"
    for folder in ("..", "../x", "/x", "a/../../b", "", ".", ".git/x", "a//b"):
        with pytest.raises(SkillcError, match="is no folder"):
            check_folder(folder)
    assert is_inside(".claude/skills/x") and not is_inside("a/.GIT/x")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("git = 1", "is no text"),
        ("ref = 'main'", "and no `git`"),
        ("git = '../x'\nref = '--x'", "is no branch"),
        ("git = '../x'\ncommit = 'main'", "is no whole commit"),
        ("git = '../x'\nfrom = 'skills/other'", "is the folder of another skill"),
        ("git = '../x'\nfrom = '../../other'", "is no folder in a repository"),
    ],
)
def test_a_manifest_with_a_wrong_origin_is_refused(project, lines, problem):
    source = "" if "from" in lines else f"from = '{FOLDER}'\n"
    (project / "skills.toml").write_text(f"[skills.{NAME}]\n{source}{lines}\n")
    with pytest.raises(SkillcError, match=problem):
        read_manifest(project)


# ---- the verbs --------------------------------------------------------------------------------------


def run(*words):
    done = CliRunner().invoke(skillc, [*map(str, words)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.stdout


def test_the_verbs_install_update_and_adopt(project, shared):
    bare, work, _ = shared
    shutil.rmtree(project / "skills")
    assert run("install", "--git", bare, "--to", "codex")[1] == f"codex  {PLACE}   installed\n"
    commit(work, *RULES, NEW)
    status, out = run("update", "--brief")
    assert status == 1 and f"+ [Rules] {NEW}" in out and "from another repository" in out
    run("adopt", NAME, "--yes")
    assert text(project) == skill_md(*RULES, NEW) and run("update")[0] == 0
    assert run("installed")[0] == 0
    run("uninstall", NAME)
    assert not (project / PLACE).exists()
    for words, problem in (
        (("install", "--git", bare), "no agent is named"),
        (("install", "--ref", "main"), "names no repository"),
        (("install", "--git", bare, "--to", "codex", "--no-manifest"), "can't be used together"),
        (("install", "--git", Path("/nowhere"), "--to", "codex"), "git cannot fetch"),
        (("install", "--git", "--upload-pack=touch x", "--to", "codex"), "git reads as an option"),
    ):
        with pytest.raises(SkillcError, match=problem):
            run(*words)
