"""What no local engine does by itself: conflicts, throttling, lost and late answers, old indexes.

Faults work on the real engine. `layer` is the place in the client where they act, `kinds` are the
faults. Each delivery is counted, and a whole test run in which a class of faults was never
delivered fails: its tests would have tested nothing.
"""
