#!/bin/bash
set -e
iconv -f UTF-16 -t UTF-8 export.txt | grep -c ferry > ferries.txt
