#!/bin/bash
set -e
awk -F. '{ print $3 "-" $2 "-" $1 }' dates.txt | sort | head -n 1 > earliest.txt
