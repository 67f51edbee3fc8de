#!/bin/bash
set -e
python3 -c "import json
for row in json.load(open('towns.json')):
    print(row['town'], row['people'], sep=',')" > towns.csv
