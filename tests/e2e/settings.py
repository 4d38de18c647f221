"""The server's settings with a channel layer that loses 1 in 5 messages."""

from gameserver.settings import *  # noqa: F403

CHANNEL_LAYERS["default"]["BACKEND"] = "tests.e2e.lossy.LossyLayer"  # noqa: F405
