"""Exit with the reason if the work is not right."""

import sys

if open('/app/median.txt').read().strip() != '14':
    sys.exit('gaps in the data were counted')
