"""What happens to games: load, ask the rules, one conditional write, hint.

`lobby` is a game before its start, `play` a running one, `find` the lists and quick-join, `sweep`
the games that nobody tends.
"""
