#!/bin/bash
set -e
python3 -c "import csv
for row in csv.DictReader(open('stock.csv')):
    print(row['name'])" > names.txt
