"""Exit with the reason if the work is not right."""

import json
import os
import sys

good = sum(os.path.exists(path) and open(path).read().strip() == want for path, want in (("/app/first.txt", "4.0"), ("/app/second.txt", "7.0")))
json.dump({"reward": good / 2, "files": good}, open("/logs/verifier/reward.json", "w"))
if good < 2:
    sys.exit('gaps in the data were counted')
