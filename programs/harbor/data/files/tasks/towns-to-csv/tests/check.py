"""Exit with the reason if the work is not right."""

import sys

if open('/app/towns.csv').read() != 'Keld,4120\nLinfold,890\nUpper Tarn,1302\n':
    sys.exit('the result is not in the form that was asked for')
