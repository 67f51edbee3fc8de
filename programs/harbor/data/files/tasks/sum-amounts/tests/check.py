"""Exit with the reason if the work is not right."""

import sys

if open('/app/total.txt').read().strip() != '500':
    sys.exit("the result is not that of the file's own separators and encoding")
