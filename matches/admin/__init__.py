"""Operators' pages on games, and on the games of players."""

from django.contrib import admin

from matches import admin_models
from matches.admin.games import GameAdmin
from matches.admin.players import PlayingPlayerAdmin
from players.admin_models import Player

admin.site.register(admin_models.Game, GameAdmin)
# The app below cannot know games, so its page is replaced by one that does.
admin.site.unregister(Player)
admin.site.register(Player, PlayingPlayerAdmin)
