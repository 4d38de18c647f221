"""What must hold after any race, whoever won it."""

from matches.services import check


def assert_sound(*, games: int) -> None:
    """Fail on any broken invariant of the whole table, and if it has another number of games."""
    report = check.check_table()
    assert not report.broken, "\n".join(report.broken)
    assert report.games == games, report
