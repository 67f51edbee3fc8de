#!/bin/bash
set -e
sed 's/colour/color/g' text.txt > text-us.txt
