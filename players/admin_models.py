"""What Django's admin needs to know of players: a name, permissions and a place for its log."""

from django.db import models


class Player(models.Model):
    """Stands for a `User` item; there is no such table in the staff database."""

    username = models.CharField(primary_key=True, max_length=20)

    class Meta:
        managed = False
        default_permissions = ("view", "change", "delete")
        permissions = [
            ("ban_player", "Can ban players and end their sessions"),
            ("appoint_referee", "Can make players referees"),
            ("export_player", "Can export all data of a player"),
        ]

    def __str__(self) -> str:
        return self.username
