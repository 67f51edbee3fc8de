"""A run in MLflow by its own client, in a store of files, and with a server that is not there."""

import json
import shutil

import pytest
from click.testing import CliRunner
from made_run import RUN, make_run
from mlflow.tracking import MlflowClient

from skillc.cli import skillc
from skillc.errors import SkillcError
from skillc.export.mlflow import log_run
from skillc.review.run_view import read_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "run", steps=3, examples=30, markup="<b>'\u2028é")


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The address of a store of files, which newer versions of MLflow write only where they are told so."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return (tmp_path / "store").as_uri()


def test_a_run_has_its_parameters_metrics_by_step_and_files(made, store, tmp_path):
    done = log_run(made.program, tracking=store)
    client, view = MlflowClient(tracking_uri=store), read_run(made.program)
    run = client.get_run(done.run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == f"sort-things {RUN[:8]}"
    assert run.data.params["model.target"] == "rulebook/v1"
    assert run.data.params["optimize.batch"] == "12"
    assert run.data.tags["skillc.run"] == RUN
    assert run.data.tags["skillc.verdict"] == "improved"
    assert run.data.metrics["final.test.best"] == pytest.approx(0.6)
    assert run.data.metrics["final.test.gain"] == pytest.approx(0.3)
    history = client.get_metric_history(done.run_id, "accepted")
    assert [(each.step, each.value) for each in history] == [
        (i, float(decision.accepted)) for i, decision in enumerate(view.decisions, 1)
    ]
    incumbent = client.get_metric_history(done.run_id, "validation.incumbent")
    assert incumbent[0].step == 0
    assert len(incumbent) == len(view.decisions) + 1
    folder = client.download_artifacts(done.run_id, "", str(tmp_path))
    assert (tmp_path / "skill/SKILL.md").read_bytes() == made.paths.skill.read_bytes()
    assert json.loads((tmp_path / "sort-things.lock").read_text())["run"] == RUN
    assert {"report.md", "sort-things.report.html", "things.skill"} <= {p.name for p in tmp_path.rglob("*")}
    assert folder


def test_a_run_is_logged_once_and_replaced_when_it_changes(made, store, tmp_path):
    folder = shutil.copytree(made.folder, tmp_path / "run")
    program = folder / "things.skill"
    first, again = (log_run(program, tracking=store) for _ in range(2))
    assert (again.run_id, again.known, first.known) == (first.run_id, True, False)
    shutil.rmtree(folder / ".skillc")
    other = log_run(program, tracking=store)
    assert not other.known
    client = MlflowClient(tracking_uri=store)
    experiment = client.get_experiment_by_name("sort-things").experiment_id
    assert [run.info.run_id for run in client.search_runs([experiment])] == [other.run_id]


def test_a_secret_is_redacted_in_parameters_and_files(made, store, tmp_path):
    done = log_run(made.program, tracking=store, environ={"OPENAI_API_KEY": "word3 word4 word5"})
    client = MlflowClient(tracking_uri=store)
    (tmp_path / "files").mkdir()
    client.download_artifacts(done.run_id, "", str(tmp_path / "files"))
    texts = [path.read_text() for path in (tmp_path / "files").rglob("*") if path.is_file()]
    assert not any("word3 word4 word5" in text for text in texts)
    assert any("[secret OPENAI_API_KEY]" in text for text in texts)


def test_a_server_that_is_not_there_is_an_error_that_names_it(made, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(SkillcError, match=r"http://127\.0\.0\.1:9") as problem:
        log_run(made.program, tracking="http://127.0.0.1:9")
    assert "--tracking-uri" in problem.value.hint


def test_the_verb_prints_where_the_run_is(made, store):
    done = CliRunner().invoke(
        skillc, ["export", "mlflow", str(made.program), "--tracking-uri", store, "--experiment", "mine"]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("logged ")
    assert "experiment `mine`" in done.stdout
