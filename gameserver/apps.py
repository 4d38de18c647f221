"""What Django calls this app."""

from django.apps import AppConfig


class GameServerConfig(AppConfig):
    name = "gameserver"
    verbose_name = "Table"
