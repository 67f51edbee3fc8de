"""English words that carry no subject, all that the rulebook knows beforehand: function words and boilerplate."""

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

# Greetings, days, months and numbers occur in letters about anything.
_BOILERPLATE = """
hello hi hey dear greetings thanks thank cheers regards sincerely sir madam team sorry kind kindly best
monday tuesday wednesday thursday friday saturday sunday weekend weekday
january february march april june july august september october november december
morning noon afternoon evening night midnight yesterday tomorrow tonight
second seconds minute minutes hour hours day days week weeks month months year years ago
zero three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half dozen first third twice
"""

FUNCTION_WORDS = frozenset(_WORDS.split())
NO_SIGNS = FUNCTION_WORDS | frozenset(_BOILERPLATE.split())
