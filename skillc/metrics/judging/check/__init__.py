"""How far a judge can be trusted: its noise, its biases, and its agreement with labels.

- `questions.py`: what a judge is asked about one answer: the same again, in another order, padded, with an injection;
  the replies of all judges, and the scores that follow from them.
- `biases.py`: the tests of all biases of a judge, as one family.
- `labelled.py`: agreement with labels: overall, by criterion, by score, and on contested examples.
- `findings.py`: all that is found about one judge.
"""
