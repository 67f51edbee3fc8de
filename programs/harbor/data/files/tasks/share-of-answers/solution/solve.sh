#!/bin/bash
set -e
awk -F, 'NR > 1 && $2 != "" { n++; if ($2 == "yes") y++ } END { printf "%d\n", 100 * y / n }' survey.csv > share.txt
