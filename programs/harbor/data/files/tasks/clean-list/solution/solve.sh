#!/bin/bash
set -e
LC_ALL=C sort -u emails.txt > clean.txt
