"""Labels of sessions in the store."""

import sqlite3

from skillc.sessions.labels import Label, add_labels, labels_of
from skillc.sessions.store import FORMAT, SessionStore


def test_a_source_replaces_its_own_label_and_no_other(tmp_path):
    with SessionStore(tmp_path / "s.db", create=True) as store:
        add_labels(
            store,
            [Label("a:1", "route", "person:ada", "worked", 1.0), Label("a:1", "route", "signal:tests", "worked", 0.8)],
        )
        add_labels(
            store, [Label("a:1", "route", "signal:tests", "failed", 0.9, "2 tests failed", "2026-11-01T00:00:00")]
        )
        assert [(each.source, each.outcome, each.kind) for each in labels_of(store, session="a:1")] == [
            ("person:ada", "worked", "person"),
            ("signal:tests", "failed", "signal"),
        ]
        assert not list(labels_of(store, skill="other"))


def test_a_store_of_the_first_format_gets_what_is_new(tmp_path):
    path = tmp_path / "s.db"
    SessionStore(path, create=True).close()
    with sqlite3.connect(path) as old:
        for table in ("labels", "findings", "verdicts"):
            old.execute(f"DROP TABLE {table}")
        old.execute("PRAGMA user_version = 1")
    old.close()
    with SessionStore(path) as store:
        add_labels(store, [Label("a:1", "", "judge:fit", "unclear", 0.5)])
        assert store.execute("PRAGMA user_version")[0][0] == FORMAT
