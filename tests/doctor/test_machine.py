from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillc.doctor.machine import Gpu, Memory, free_disk, gpus, machine_here, memory, read_gpus

MIB = 1024**2
# As `nvidia-smi --query-gpu=name,memory.total,memory.free --format=csv,noheader,nounits` prints it.
PRINTED = "NVIDIA H100 80GB HBM3, 81559, 81004\nNVIDIA A10, 23028, 12\n"


def smi(folder: Path, script: str) -> None:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_gpus_are_those_that_nvidia_smi_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin{os.pathsep}/usr/bin")
    smi(tmp_path, f"case \"$*\" in *memory.total,memory.free*nounits*) printf '{PRINTED}';; *) exit 3;; esac")
    expected = (
        Gpu("NVIDIA H100 80GB HBM3", 81559 * MIB, 81004 * MIB),
        Gpu("NVIDIA A10", 23028 * MIB, 12 * MIB),
    )
    assert gpus() == expected
    assert machine_here().gpus == expected
    smi(tmp_path, "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver'; exit 9")
    assert gpus() == ()
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert gpus() == ()


def test_a_line_of_another_form_is_left_out() -> None:
    assert read_gpus("x\nNVIDIA A10, [N/A], [N/A]\n, , \nA, B, 10, 5") == (Gpu("A, B", 10 * MIB, 5 * MIB),)


def test_memory_is_that_of_the_machine_or_of_its_container(tmp_path: Path) -> None:
    info = tmp_path / "meminfo"
    info.write_text("MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    600 kB\nHugePages_Total:       0\n")
    assert memory(info, tmp_path) == Memory(1_024_000, 614_400)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory(info, tmp_path) == Memory(1_024_000, 614_400)
    (tmp_path / "memory.max").write_text("500000\n")
    (tmp_path / "memory.current").write_text("100000\n")
    assert memory(info, tmp_path) == Memory(500_000, 400_000)
    info.write_text("MemTotal:\n")
    found = memory(info, tmp_path / "none")
    assert found is None or found.total > 0


def test_the_disk_of_a_folder_that_is_yet_to_be_made(tmp_path: Path) -> None:
    free = free_disk(tmp_path / "a" / "b")
    assert free is not None
    assert free > 0
