"""What can be wrong with a change to the settings; only operators see these."""

from gameserver.errors import GameServerError


class SettingChangedMeanwhile(GameServerError):
    """Another operator changed the same setting first. Extra: `setting`, `current`."""

    code = "setting_changed"
    status = 409
    title = "Somebody else changed this setting meanwhile."


class SettingsItemMissing(GameServerError):
    """The table holds no settings item, so there is nothing to change."""

    code = "settings_missing"
    status = 409
    title = "There is no settings item: run `manage.py create_table`."


class NoSuchRevision(GameServerError):
    """The history has no such revision."""

    code = "no_such_revision"
    status = 404
    title = "The history has no such revision."


class WhyNeeded(GameServerError):
    """A change needs a reason."""

    code = "why_needed"
    status = 422
    title = "Say why, in 1 to 500 characters."
