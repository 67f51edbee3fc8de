"""Exit with the reason if the work is not right."""

import sys

if open('/app/errors.txt').read().strip() != '2':
    sys.exit("the result is not that of the file's own separators and encoding")
