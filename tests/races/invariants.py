"""What must hold after any race, whoever won it."""

from matches.models import Game
from matches.services import check


def assert_sound(*, games: int | None = None) -> None:
    """Fail on any broken invariant of the whole table, and if it has another number of `games`."""
    report = check.check_table()
    assert not report.broken, "\n".join(report.broken)
    assert games in {None, report.games}, report


def seated_in(game: Game) -> set[str]:
    """Return who sits there; the game's own count must be theirs."""
    seen, roster = Game.with_roster(game.game_id, consistent=True)
    assert seen is not None
    assert seen.player_count == len(roster)
    return {seat.username for seat in roster}
