"""Exit with the reason if the work is not right."""

import sys

if open('/app/share.txt').read().strip() != '75':
    sys.exit('gaps in the data were counted')
