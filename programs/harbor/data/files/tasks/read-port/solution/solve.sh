#!/bin/bash
set -e
python3 -c "import configparser
c = configparser.ConfigParser()
c.read('app.ini')
print(c['server']['port'])" > port.txt
