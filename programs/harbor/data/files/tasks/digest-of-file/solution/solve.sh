#!/bin/bash
set -e
sha256sum release.bin | cut -d ' ' -f 1 > digest.txt
