"""Exit with the reason if the work is not right."""

import sys

if open('/app/count.txt').read().strip() != '5':
    sys.exit('gaps in the data were counted')
