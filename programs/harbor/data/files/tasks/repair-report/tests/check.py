"""Exit with the reason if the work is not right."""

import subprocess
import sys

done = subprocess.run([sys.executable, "/app/report.py"], capture_output=True, text=True)
if done.stdout.strip() != "total 42":
    sys.exit('it still fails when it runs')
