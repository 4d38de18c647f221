"""Django settings, from the environment; `.env.example` lists what can be set.

A value that can't be right ends any command with one line (gameserver/environment.py).
`ENVIRONMENT=production` refuses to start on a missing or weak secret, on unnamed hosts, and on a
Redis without a password. `development`, the default, makes a secret and keeps it in `DATA_DIR`.
"""

import os
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from corsheaders.defaults import default_headers
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import SimpleLazyObject

from gameserver import environment as env
from gameserver.logs import configure_logs
from gameserver.secret_key import load_or_create_secret, weakness

BASE_DIR = Path(__file__).resolve().parent.parent

if os.environ.get("ENVIRONMENT", "development") == "development":
    env.load_file(BASE_DIR / ".env")

# No other name: a mistyped one would get another's standards.
ENVIRONMENT = env.choice("ENVIRONMENT", "development", ["development", "test", "production"])
IS_PRODUCTION = ENVIRONMENT == "production"
DEBUG = env.switch("DEBUG")
DATA_DIR = Path(env.text("DATA_DIR") or BASE_DIR / ".data").resolve()
# Where `serve` listens, unless its options say otherwise.
HOST = env.text("HOST") or "127.0.0.1"
PORT = env.integer("PORT", 8000, 0, 65_535)

# Secrets: the first signs; the fallbacks, comma-separated, keep what they signed valid meanwhile.
SECRET_KEY = env.text("SECRET_KEY")
SECRET_KEY_FALLBACKS = env.listed("SECRET_KEY_FALLBACKS", "(?s:.+)", "secrets")
if IS_PRODUCTION:
    for secret in (SECRET_KEY, *SECRET_KEY_FALLBACKS):
        if reason := weakness(secret):
            raise ImproperlyConfigured(f"SECRET_KEY {reason}; production needs a random one.")
    if DEBUG:
        raise ImproperlyConfigured("DEBUG must be off in production.")
elif not SECRET_KEY:
    # Made when something is signed: a command that only looks around leaves no files.
    SECRET_KEY = cast(str, SimpleLazyObject(lambda: load_or_create_secret(DATA_DIR / "secret_key")))

# The game table
DYNAMODB_ENDPOINT_URL = (
    env.url("DYNAMODB_ENDPOINT_URL", ["http", "https"], "embedded", "aws") or "embedded"
)
DYNAMODB_TABLE = env.text(
    "DYNAMODB_TABLE", "gameserver", env.TABLE_NAME, "3 to 255 letters, digits, '_', '-' or '.'"
)
A_REGION = "a region such as us-east-1"
AWS_REGION = env.text(
    "AWS_REGION",
    env.text("AWS_DEFAULT_REGION", "us-east-1", env.REGION, A_REGION),
    env.REGION,
    A_REGION,
)
LISTING_SHARDS = env.integer("LISTING_SHARDS", 1, 1, 100)
DYNAMODB_CONNECT_TIMEOUT_SECONDS = env.number("DYNAMODB_CONNECT_TIMEOUT_SECONDS", 1, 0.05, 60)
DYNAMODB_READ_TIMEOUT_SECONDS = env.number("DYNAMODB_READ_TIMEOUT_SECONDS", 2, 0.05, 60)
BLOCKING_THREADS = env.integer("BLOCKING_THREADS", 32, 1, 1000)
REQUEST_BUDGET_SECONDS = env.number("REQUEST_BUDGET_SECONDS", 5, 0.1, 300)
# On SIGTERM, requests on their way may take this long to finish; 0 cuts them off.
GRACEFUL_SHUTDOWN_SECONDS = env.integer("GRACEFUL_SHUTDOWN_SECONDS", 10, 0, 3600)
# A WebSocket whose client answers no ping for twice this time is closed.
SOCKET_PING_SECONDS = env.number("SOCKET_PING_SECONDS", 20, 0.1, 3600)
PASSWORD_THREADS = env.integer("PASSWORD_THREADS", 2, 1, 100)

# Rules of the house
ELIMINATION_AUTHORITY = env.choice("ELIMINATION_AUTHORITY", "killer", ["killer", "referee"])

# Search by a sentence (off until the switch ai_search_enabled is on) asks a model on Bedrock.
BEDROCK_MODEL_ID = (
    env.text("BEDROCK_MODEL_ID", "", r"[A-Za-z0-9_.:/-]*", "the id or ARN of a model")
    or "amazon.nova-lite-v1:0"
)
BEDROCK_REGION = env.text("BEDROCK_REGION", "", f"({env.REGION})?", A_REGION) or AWS_REGION
BEDROCK_ENDPOINT_URL = env.url("BEDROCK_ENDPOINT_URL", ["http", "https"])

# Redis carries hints and rate limits between processes; one process needs none.
REDIS_URL = env.url("REDIS_URL", ["redis", "rediss"])
if IS_PRODUCTION and REDIS_URL and not urlsplit(REDIS_URL).password:
    raise ImproperlyConfigured("REDIS_URL has no password; production needs one.")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # Two environments on one Redis must not hear each other.
        "CONFIG": {
            "hosts": [REDIS_URL],
            "prefix": env.text("REDIS_PREFIX") or f"{DYNAMODB_TABLE}-{ENVIRONMENT}",
        },
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

# Who may talk to us
ALLOWED_HOSTS = env.listed("ALLOWED_HOSTS", env.HOST, "host names")
if not ALLOWED_HOSTS and not IS_PRODUCTION:
    ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
if IS_PRODUCTION and (not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS):
    raise ImproperlyConfigured("ALLOWED_HOSTS must name the hosts that production serves.")
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")
CORS_ALLOWED_ORIGINS = env.origins("CORS_ALLOWED_ORIGINS")
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_HEADERS = [*default_headers, "idempotency-key", "if-none-match", "x-client-version"]
CORS_EXPOSE_HEADERS = [
    *("ETag", "Retry-After", "X-Request-ID"),
    *("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"),
]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_PRODUCTION
SESSION_COOKIE_HTTPONLY = True
A_YEAR = 31_536_000
SECURE_HSTS_SECONDS = env.integer(
    "SECURE_HSTS_SECONDS", A_YEAR if IS_PRODUCTION else 0, 0, 10 * A_YEAR
)
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "style-src": [SELF],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# Source: a game's largest request is far below this; Django's default is 2.5 MB.
DATA_UPLOAD_MAX_MEMORY_SIZE = 65_536

ROOT_URLCONF = "gameserver.urls"
ASGI_APPLICATION = "gameserver.asgi.application"
INSTALLED_APPS = [
    "servestatic",
    # Before the admin, whose base and first page it extends.
    "gameserver",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "corsheaders",
    "csp",
    # Serves the API's documentation page from our own static files.
    "ninja",
    "settings_singleton",
    "players",
    "matches",
]
# Our subclasses of Django's own; gameserver/middleware.py says why.
MIDDLEWARE = [
    "gameserver.problems.ApiMiddleware",
    "gameserver.middleware.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "settings_singleton.middleware.ApiGate",
    "gameserver.middleware.ContentSecurityPolicyMiddleware",
    "gameserver.middleware.CommonMiddleware",
    "gameserver.middleware.ClickjackingMiddleware",
    "gameserver.middleware.SessionMiddleware",
    "gameserver.middleware.CsrfMiddleware",
    "gameserver.middleware.AuthenticationMiddleware",
    "gameserver.middleware.MessageMiddleware",
    "axes.middleware.AxesMiddleware",
]
# These look for Django's classes by name and miss that ours are subclasses of them.
SILENCED_SYSTEM_CHECKS = ["security.W001", "security.W002", "security.W003"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Staff accounts, their sessions and the admin log; never game data.
DATABASES = {"default": env.database("DATABASE_URL", f"sqlite:///{DATA_DIR / 'staff.sqlite3'}")}
# Under ASGI a request's threads change, so a kept connection is one that leaks.
DATABASES["default"]["CONN_MAX_AGE"] = 0
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]
# Per account and address: a stranger can't lock an operator out everywhere.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 1
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
# Serves the packages' own static files; no collectstatic step.
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
# structlog writes everything; Django must not set up handlers of its own.
LOGGING_CONFIG = None
configure_logs(LOG_LEVEL)
