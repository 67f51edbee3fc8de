"""Exit with the reason if the work is not right."""

import sys

if open('/app/names.txt').read() != 'Lamp, brass\nChair\nDesk, oak\n':
    sys.exit("the result is not that of the file's own separators and encoding")
