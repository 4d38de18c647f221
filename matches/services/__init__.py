"""What happens to games: load, ask the rules, one conditional write, hint.

`lobby` is a game before its start, `play` a running one, `leaving` how a seat is given up in
either, `find` the lists and quick-join, `sweep` the games that nobody tends.
"""
