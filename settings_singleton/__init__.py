"""Global settings and kill switches: one item of the table, one frozen snapshot in each process.

| Module | Does |
|---|---|
| `registry` | lists every setting, one line each |
| `shapes` | reads the item's attributes, and names them for writing |
| `models` | the item, its history, the counters |
| `live`, `refresher`, `cache` | keep the snapshot, refresh it, give it to everybody |
| `services` | check a switch, change, look back, roll back |
| `rules`, `rate_limits`, `middleware` | enforce them in front of the API |
| `counters` | global totals |
| `testing`, `openfeature` | the same values for tests, and for the OpenFeature standard |

Changing one: `docs/operations.md`, "Flip a switch in an emergency".
"""
