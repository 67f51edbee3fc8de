#!/bin/bash
set -e
grep -c . readings.txt > count.txt
