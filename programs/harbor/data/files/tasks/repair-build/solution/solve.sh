#!/bin/bash
set -e
sed -i 's/mkdir out/mkdir -p out/; s/b.text/b.txt/' build.sh && bash build.sh && bash build.sh
