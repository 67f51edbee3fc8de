#!/bin/bash
# check.py writes a reward for each part.
python3 /tests/check.py
