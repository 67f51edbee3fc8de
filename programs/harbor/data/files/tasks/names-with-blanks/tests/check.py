"""Exit with the reason if the work is not right."""

import os
import subprocess
import sys

subprocess.run(["bash", "/app/copy.sh"])
if sorted(os.listdir("/app/copies")) != ["my notes.txt", "plan.txt"] or open("/app/number.txt").read().strip() != "2":
    sys.exit('it still fails when it runs')
