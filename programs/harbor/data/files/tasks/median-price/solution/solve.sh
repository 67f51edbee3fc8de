#!/bin/bash
set -e
python3 -c "import statistics
print(statistics.median(int(line) for line in open('prices.txt') if line.strip()))" > median.txt
