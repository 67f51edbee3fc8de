#!/bin/bash
set -e
mkdir out
cp src/a.txt out/
cat src/b.text >> out/a.txt
