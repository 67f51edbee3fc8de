#!/bin/bash
set -e
ls -S box | head -n 1 > largest.txt
