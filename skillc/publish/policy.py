"""Decide what a declared policy adopts without a person, and why it holds the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from skillc.plan.lock import Lock
from skillc.publish.changes import Changes
from skillc.publish.manifest import Policy
from skillc.text import counted

POINTS = 100


def reasons_to_hold(
    policy: Policy,
    changes: Changes,
    lock: Lock | None,
    *,
    tested: bool,
    sessions: Collection[str],
    cleared: bool,
    thin: int = 0,
) -> Iterator[str]:
    """Yield why a staged version needs a person; nothing if the policy adopts it.

    Args:
        policy: of the skill's entry in the manifest.
        changes: from the adopted version to the staged one.
        lock: of the compile, None without one.
        tested: whether the test in the lock is of the staged files.
        sessions: keys of the sessions behind its rules.
        cleared: whether all of these are known and usable.
        thin: rules with fewer independent sessions than the policy asks for.
    """
    if policy.who != "verdict":
        yield f"the policy is `{policy.who}`"
        return
    if lock is None:
        yield "it has no lock, so its verdict is unknown"
    elif not tested:
        yield "the test in its lock is of another text: it was edited by hand since"
    else:
        yield from _evidence(policy, lock)
    if changes.share is None:
        yield "no version was adopted before"
    elif policy.change is not None and changes.share > policy.change:
        yield f"it changes {changes.share:.0f} % of the text, and the policy admits {policy.change:g} %"
    if changes.frontmatter:
        yield f"the frontmatter changes: {', '.join(f'`{line}`' for line in changes.frontmatter)}"
    files = [f"`{each.path}`" for each in changes.files if each.runs]
    if files and not policy.files:
        yield f"files other than markdown are new or changed: {', '.join(files)}"
    if sessions and policy.sessions == "held":
        yield f"it has rules from {len(sessions):,} sessions"
    elif sessions and not cleared:
        yield f"of its {len(sessions):,} sessions, some are not in the store, suspect or withdrawn"
    elif thin:
        yield f"{counted(thin, 'rule')} cite fewer than {counted(policy.support, 'independent session')}"


def _evidence(policy: Policy, lock: Lock) -> Iterator[str]:
    if policy.verdict == "improved" and lock.verdict != "improved":
        yield f"the verdict is `{lock.verdict}`"
    if policy.gain is None:
        return
    if lock.test.gain is None:
        yield "no gain was measured on the test split"
    elif lock.test.gain * POINTS < policy.gain:
        yield f"the gain is {float(lock.test.gain * POINTS):+.1f} points, and the policy asks for {policy.gain:g}"
