"""Exit with the reason if the work is not right."""

import sys

if open('/app/words.txt').read() != 'the\nboat\nlake\n':
    sys.exit('the result is not in the form that was asked for')
