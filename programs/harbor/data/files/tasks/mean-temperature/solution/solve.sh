#!/bin/bash
set -e
awk '$2 != "NA" { sum += $2; n++ } END { printf "%.1f\n", sum / n }' week.txt > mean.txt
