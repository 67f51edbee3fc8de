"""Exit with the reason if the work is not right."""

import sys

import hashlib
if open("/app/digest.txt").read().strip() != hashlib.sha256(open("/app/release.bin", "rb").read()).hexdigest():
    sys.exit('the result is not in the form that was asked for')
