#!/bin/bash
set -e
mkdir -p lower; for f in scans/*; do cp "$f" "lower/$(basename "$f" | tr A-Z a-z)"; done
