import subprocess
import sys

from convert import convert


def test_a_date_is_converted():
    assert convert("3.4.2024") == "2024-04-03"


def test_a_day_that_does_not_exist_is_unknown():
    assert convert("31.2.2024") == "unknown"


def test_the_script_prints_the_date():
    done = subprocess.run([sys.executable, "scripts/convert.py", "3.4.2024"], capture_output=True, text=True)
    assert done.stdout == "2024-04-03\n", done.stderr
