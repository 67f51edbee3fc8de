"""Exit with the reason if the work is not right."""

import sys

if open('/app/unique.txt').read() != 'Aasen\nBrandt\nDahl\nMoe\n':
    sys.exit('the result is not in the form that was asked for')
