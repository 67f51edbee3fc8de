#!/bin/bash
set -e
for i in 1 2; do awk -v i=$i '$i != "-" { s += $i; n++ } END { printf "%.1f\n", s / n }' pairs.txt; done | { read a; read b; echo $a > first.txt; echo $b > second.txt; }
