#!/bin/bash
set -e
mkdir -p chapters; awk '/^#/ { n++ } { print > ("chapters/" n ".txt") }' book.txt
