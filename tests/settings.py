"""The project's settings for a test run: its own data folder, and nothing from the outside."""

import os
import tempfile

# Kept for the whole run; its finaliser removes the folder.
_data_dir = tempfile.TemporaryDirectory(prefix="gameserver-tests-")

os.environ.update(
    ENVIRONMENT="test",
    DATA_DIR=_data_dir.name,
    LOG_LEVEL="WARNING",
    DATABASE_URL="sqlite://:memory:",
    SECRET_KEY="a secret of the test run, long enough for every signature in it",
    # conftest.py points this at the engine of the run before any test needs it.
    DYNAMODB_ENDPOINT_URL="http://127.0.0.1:9",
    AWS_ACCESS_KEY_ID="local",
    AWS_SECRET_ACCESS_KEY="local",
    AWS_REGION="us-east-1",
)
for name in ("DEBUG", "REDIS_URL", "LISTING_SHARDS", "ELIMINATION_AUTHORITY", "ALLOWED_HOSTS"):
    os.environ.pop(name, None)

from gameserver.settings import *  # noqa: E402, F403 (the environment comes first)
