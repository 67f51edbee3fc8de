"""Exit with the reason if the work is not right."""

import os
import sys

if sorted(os.listdir("/app/lower")) != ["index.txt", "page1.txt", "page2.txt"]:
    sys.exit('the result is not in the form that was asked for')
if not os.path.exists('/app/scans/PAGE1.TXT') or open('/app/scans/PAGE1.TXT').read() != 'one\n':
    sys.exit('a given file was changed')
if not os.path.exists('/app/scans/INDEX.TXT') or open('/app/scans/INDEX.TXT').read() != 'index\n':
    sys.exit('a given file was changed')
