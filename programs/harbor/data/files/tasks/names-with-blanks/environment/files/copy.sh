#!/bin/bash
mkdir -p /app/copies
for f in $(ls /app/in); do
  cp /app/in/$f /app/copies/$f
done
ls /app/copies | wc - l > /app/number.txt
