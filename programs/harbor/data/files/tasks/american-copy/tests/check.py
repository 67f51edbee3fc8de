"""Exit with the reason if the work is not right."""

import os
import sys

if open('/app/text-us.txt').read().strip() != 'The color of the harbour.\nA color photograph.':
    sys.exit('the result is not in the form that was asked for')
if not os.path.exists('/app/text.txt') or open('/app/text.txt').read() != 'The colour of the harbour.\nA colour photograph.\n':
    sys.exit('a given file was changed')
