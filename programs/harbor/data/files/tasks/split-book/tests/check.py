"""Exit with the reason if the work is not right."""

import os
import sys

if [open(f"/app/chapters/{i}.txt").read() for i in (1, 2, 3)] != ["# One\nThe first.\n", "# Two\nThe second.\n", "# Three\nThe third.\n"]:
    sys.exit('the result is not in the form that was asked for')
if not os.path.exists('/app/book.txt') or open('/app/book.txt').read() != '# One\nThe first.\n# Two\nThe second.\n# Three\nThe third.\n':
    sys.exit('a given file was changed')
