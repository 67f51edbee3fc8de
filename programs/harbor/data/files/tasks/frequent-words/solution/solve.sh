#!/bin/bash
set -e
tr ' ' '\n' < text.txt | sort | uniq -c | sort -k 1 -n -r | head -n 3 | awk '{ print $2 }' > words.txt
