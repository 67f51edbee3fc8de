#!/bin/bash
set -e
tail -n +2 hills.csv | sort -t "$(printf '\t')" -k 2 -n -r | head -n 1 | cut -f 1 > highest.txt
