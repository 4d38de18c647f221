"""What Django's admin needs to know of games: a name, permissions and a place for its log."""

from django.db import models


class Game(models.Model):
    """Stands for a `Game` item; there is no such table in the staff database."""

    game_id = models.CharField(primary_key=True, max_length=64)

    class Meta:
        managed = False
        default_permissions = ("view", "change")
        permissions = [
            ("end_game", "Can cancel and end games"),
            ("kick_from_game", "Can take players out of games"),
        ]

    def __str__(self) -> str:
        return self.game_id
