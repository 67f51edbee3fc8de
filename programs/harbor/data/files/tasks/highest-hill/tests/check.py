"""Exit with the reason if the work is not right."""

import sys

if open('/app/highest.txt').read().strip() != 'High Seat':
    sys.exit("the result is not that of the file's own separators and encoding")
