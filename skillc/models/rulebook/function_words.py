"""English words that say nothing about a subject: rulebook's whole prior knowledge."""

_WORDS = """
a about above after again against all also am an and another any anybody anyone anything are around as at away back be
because been before behind being below between both but by can cannot could d did didn do does doesn doing don done
down during each either else even ever every few for from further get gets getting give given go goes going gone got
had has have having he her here hers him his how however i if in into is isn it its just know last least less let like
ll long made make many may me might mine more most much must my myself near need never next no nobody none nor not
nothing now of off often on once one only or other others our ours out over own per perhaps please put quite rather re
really s said same say says see seem seems shall she should since so some somebody someone something still such t take
than that the their theirs them themselves then there these they thing things this those though through time to today
together too two under until up upon us use used using ve very want wants was way we well were what when where whether
which while who whom whose why will with within without would yes yet you your yours
"""

FUNCTION_WORDS = frozenset(_WORDS.split())
