"""Exit with the reason if the work is not right."""

import sys

if open('/app/earliest.txt').read().strip() != '2024-06-30':
    sys.exit("the result is not that of the file's own separators and encoding")
