#!/bin/bash
set -e
printf '%s\n' '#!/bin/bash' 'mkdir -p /app/copies' 'cp /app/in/* /app/copies/' 'ls /app/copies | wc -l > /app/number.txt' > copy.sh && bash copy.sh && cat number.txt
