"""The gate in front of /api: maintenance, old clients, and how many requests a caller may send."""

import time
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_address, ip_network

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from cachetools import TTLCache
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from gameserver.auth import read_access_token
from gameserver.errors import GameServerError, NotAuthenticated, RateLimited
from gameserver.problems import problem
from settings_singleton import rules
from settings_singleton.cache import current
from settings_singleton.rate_limits import RateLimits, Window

VERSION_HEADER = "X-Client-Version"
# Long enough to spare most signature checks; the API itself checks every token anyway.
ACCOUNT_CACHE_SECONDS = 60
ACCOUNT_CACHE_SIZE = 10_000


class ApiGate:
    """Refuse an API request before anything else works on it; runs on the event loop.

    Counts per address and, with a valid token, per account. What leaves a game or tells why the
    server is closed passes in maintenance and with any client.
    """

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        self._limits = RateLimits(settings.REDIS_URL)
        self._accounts: TTLCache[str, str] = TTLCache(ACCOUNT_CACHE_SIZE, ACCOUNT_CACHE_SECONDS)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith("/api/"):
            return await self.get_response(request)
        window: Window | None = None
        try:
            window = await self._admit(request)
        except GameServerError as error:
            response: HttpResponseBase = problem(error)
            if isinstance(error, RateLimited):
                window = Window(current().requests_per_minute, 0, error.extra["retry_after"])
        else:
            response = await self.get_response(request)
        if window is not None:
            for name, value in window.headers.items():
                response[name] = value
        return response

    async def _admit(self, request: HttpRequest) -> Window:
        """Raises: Maintenance, ClientTooOld or RateLimited, in this order."""
        flags = current()
        if not rules.is_always_open(request.method or "", request.path_info):
            rules.check_maintenance(flags.maintenance_mode)
            rules.check_client_version(
                flags.min_client_version, request.headers.get(VERSION_HEADER)
            )
        callers = {"address": network_of(request.META.get("REMOTE_ADDR", ""))}
        if username := self._account_of(request.headers.get("Authorization", "")):
            callers["account"] = username
        return await self._limits.count(callers, flags.requests_per_minute, now=time.time())

    def _account_of(self, authorization: str) -> str | None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        username = self._accounts.get(token)
        if username is None:
            try:
                username = read_access_token(token).username
            except NotAuthenticated:
                return None
            self._accounts[token] = username
        return username


def network_of(address: str) -> str:
    """Return what one subscriber holds: an IPv4 address, or the /64 of an IPv6 one.

    Source: RFC 6177 (a site gets a /64 or more).
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)
