"""Exit with the reason if the work is not right."""

import sys

if open('/app/mean.txt').read().strip() != '5.0':
    sys.exit('gaps in the data were counted')
