"""Exit with the reason if the work is not right."""

import os
import sys

if open('/app/clean.txt').read() != 'ada@example.com\njon@example.com\nmona@example.com\n':
    sys.exit('the result is not in the form that was asked for')
if not os.path.exists('/app/emails.txt') or open('/app/emails.txt').read() != 'ada@example.com\njon@example.com\nada@example.com\nmona@example.com\n':
    sys.exit('a given file was changed')
