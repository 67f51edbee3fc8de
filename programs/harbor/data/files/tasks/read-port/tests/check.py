"""Exit with the reason if the work is not right."""

import sys

if open('/app/port.txt').read().strip() != '8081':
    sys.exit('the result is not in the form that was asked for')
