#!/bin/bash
set -e
cut -f 2 service.log | grep -c '^error$' > errors.txt
