#!/bin/bash
set -e
sed -i "s/squares.txt')$/squares.txt'):/; s/+= line/+= int(line)/" table.py && python3 table.py
