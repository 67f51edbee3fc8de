"""Exit with the reason if the work is not right."""

import sys

if open('/app/largest.txt').read().strip() != 'b.log':
    sys.exit('the result is not in the form that was asked for')
