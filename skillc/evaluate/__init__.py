"""Skills and models side by side on one split: `skillc eval`.

`job.py` looks everything up before anything is sent: models, data, the bound on what it may cost; `skills.py` reads
what is compared and counts looks at the test split. `run.py` measures, `scores.py` computes, `report.py` prints.
"""
