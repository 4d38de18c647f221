"""Django settings, from the environment; `.env.example` lists what can be set.

`ENVIRONMENT=production` refuses to start on a missing or weak secret, on unnamed hosts, and on a
Redis without a password. `development`, the default, makes a secret and keeps it in `DATA_DIR`.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

import environ
from corsheaders.defaults import default_headers
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from gameserver.logs import configure_logs
from gameserver.secret_key import load_or_create_secret, weakness

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
if os.environ.get("ENVIRONMENT", "development") == "development":
    env.read_env(BASE_DIR / ".env")

ENVIRONMENT: str = env.str("ENVIRONMENT", "development")
# Any other name, a mistyped one too, is held to production's standards.
IS_PRODUCTION = ENVIRONMENT not in {"development", "test"}
DEBUG: bool = env.bool("DEBUG", False)
DATA_DIR = Path(env.str("DATA_DIR", "") or BASE_DIR / ".data").resolve()

# Secrets: the first signs; the fallbacks, comma-separated, keep what they signed valid meanwhile.
SECRET_KEY: str = env.str("SECRET_KEY", "")
SECRET_KEY_FALLBACKS: list[str] = env.list("SECRET_KEY_FALLBACKS", default=[])
if IS_PRODUCTION:
    for secret in (SECRET_KEY, *SECRET_KEY_FALLBACKS):
        if reason := weakness(secret):
            raise ImproperlyConfigured(f"SECRET_KEY {reason}; production needs a random one.")
    if DEBUG:
        raise ImproperlyConfigured("DEBUG must be off in production.")
elif not SECRET_KEY:
    try:
        SECRET_KEY = load_or_create_secret(DATA_DIR / "secret_key")
    except OSError as error:
        raise ImproperlyConfigured(
            f"DATA_DIR={DATA_DIR} can't be used: {error.strerror}."
        ) from error

# The game table
DYNAMODB_ENDPOINT_URL: str = env.str("DYNAMODB_ENDPOINT_URL", "embedded") or "embedded"
DYNAMODB_TABLE: str = env.str("DYNAMODB_TABLE", "gameserver")
AWS_REGION: str = env.str("AWS_REGION", env.str("AWS_DEFAULT_REGION", "us-east-1"))
LISTING_SHARDS: int = env.int("LISTING_SHARDS", 1)
DYNAMODB_CONNECT_TIMEOUT_SECONDS: float = env.float("DYNAMODB_CONNECT_TIMEOUT_SECONDS", 1.0)
DYNAMODB_READ_TIMEOUT_SECONDS: float = env.float("DYNAMODB_READ_TIMEOUT_SECONDS", 2.0)
BLOCKING_THREADS: int = env.int("BLOCKING_THREADS", 32)
REQUEST_BUDGET_SECONDS: float = env.float("REQUEST_BUDGET_SECONDS", 5.0)
# On SIGTERM, requests on their way may take this long to finish; 0 cuts them off.
GRACEFUL_SHUTDOWN_SECONDS: int = env.int("GRACEFUL_SHUTDOWN_SECONDS", 10)
# A WebSocket whose client answers no ping for twice this time is closed.
SOCKET_PING_SECONDS: float = env.float("SOCKET_PING_SECONDS", 20.0)
PASSWORD_THREADS: int = env.int("PASSWORD_THREADS", 2)

# Rules of the house
ELIMINATION_AUTHORITY: str = env.str("ELIMINATION_AUTHORITY", "killer")
if ELIMINATION_AUTHORITY not in {"killer", "referee"}:
    raise ImproperlyConfigured("ELIMINATION_AUTHORITY must be killer or referee.")

# Search by a sentence (off until the switch ai_search_enabled is on) asks a model on Bedrock.
BEDROCK_MODEL_ID: str = env.str("BEDROCK_MODEL_ID", "") or "amazon.nova-lite-v1:0"
BEDROCK_REGION: str = env.str("BEDROCK_REGION", "") or AWS_REGION
BEDROCK_ENDPOINT_URL: str = env.str("BEDROCK_ENDPOINT_URL", "")

# Redis carries hints and rate limits between processes; one process needs none.
REDIS_URL: str = env.str("REDIS_URL", "")
if IS_PRODUCTION and REDIS_URL and not urlsplit(REDIS_URL).password:
    raise ImproperlyConfigured("REDIS_URL has no password; production needs one.")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        # Two environments on one Redis must not hear each other.
        "CONFIG": {
            "hosts": [REDIS_URL],
            "prefix": env.str("REDIS_PREFIX", f"{DYNAMODB_TABLE}-{ENVIRONMENT}"),
        },
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

# Who may talk to us
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=[])
if not ALLOWED_HOSTS and not IS_PRODUCTION:
    ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
if IS_PRODUCTION and (not ALLOWED_HOSTS or "*" in ALLOWED_HOSTS):
    raise ImproperlyConfigured("ALLOWED_HOSTS must name the hosts that production serves.")
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
CORS_ALLOWED_ORIGINS: list[str] = env.list("CORS_ALLOWED_ORIGINS", default=[])
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_HEADERS = [*default_headers, "idempotency-key", "if-none-match", "x-client-version"]
CORS_EXPOSE_HEADERS = [
    *("ETag", "Retry-After", "X-Request-ID"),
    *("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"),
]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = IS_PRODUCTION
SESSION_COOKIE_HTTPONLY = True
SECURE_HSTS_SECONDS: int = env.int("SECURE_HSTS_SECONDS", 31_536_000 if IS_PRODUCTION else 0)
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
DATABASE_URL: str = env.str("DATABASE_URL", "") or f"sqlite:///{DATA_DIR / 'staff.sqlite3'}"
DATABASES = {"default": env.db_url_config(DATABASE_URL)}
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

LOG_LEVEL: str = env.str("LOG_LEVEL", "INFO")
# structlog writes everything; Django must not set up handlers of its own.
LOGGING_CONFIG = None
configure_logs(LOG_LEVEL)
