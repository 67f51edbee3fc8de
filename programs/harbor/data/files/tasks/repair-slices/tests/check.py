"""Exit with the reason if the work is not right."""

import sys

sys.path.insert(0, "/app")
import slices
if slices.first([1, 2, 3], 2) != [1, 2] or slices.last([1, 2, 3], 2) != [2, 3] or slices.last([1, 2], 0) != []:
    sys.exit('it still fails when it runs')
