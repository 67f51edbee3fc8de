"""Exit with the reason if the work is not right."""

import subprocess
import sys

done = subprocess.run([sys.executable, "/app/table.py"], cwd="/app", capture_output=True, text=True)
if done.stdout.strip() != "285":
    sys.exit('it still fails when it runs')
