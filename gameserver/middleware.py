"""Django's middlewares, arranged so that an API request costs no thread.

Under ASGI each classic middleware runs its hooks in a thread: two switches per middleware and
request. Those that only compute run on the event loop here; those that may touch the staff database
serve pages only, since the API knows its callers by token.
"""

from typing import Any, cast

from asgiref.sync import sync_to_async
from csp.constants import UNSAFE_INLINE
from csp.middleware import CSPMiddleware
from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest, HttpResponseBase
from django.middleware import clickjacking, common, csrf, security

DOCS_PATH = "/api/docs"
API_PREFIXES = ("/api/", "/healthz", "/readyz", "/metrics")


class _OnTheLoop:
    """Run the hooks where the request runs; for middlewares that neither block nor wait."""

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        middleware = cast(Any, self)
        response = None
        if hasattr(self, "process_request"):
            response = middleware.process_request(request)
        response = response or await middleware.get_response(request)
        if hasattr(self, "process_response"):
            response = middleware.process_response(request, response)
        return cast(HttpResponseBase, response)


class SecurityMiddleware(_OnTheLoop, security.SecurityMiddleware):
    pass


class ContentSecurityPolicyMiddleware(_OnTheLoop, CSPMiddleware):
    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if request.path_info == DOCS_PATH:
            # Its script sets styles; no page of ours does.
            cast(Any, response)._csp_update = {"style-src": [UNSAFE_INLINE]}
        return super().process_response(request, response)


class CommonMiddleware(_OnTheLoop, common.CommonMiddleware):
    pass


class ClickjackingMiddleware(_OnTheLoop, clickjacking.XFrameOptionsMiddleware):
    pass


class _PagesOnly:
    """Stay out of API requests."""

    def __call__(self, request: HttpRequest) -> Any:
        if request.path_info.startswith(API_PREFIXES):
            return cast(Any, self).get_response(request)
        return super().__call__(request)  # type: ignore[misc]  # the middleware mixed in with


class SessionMiddleware(_PagesOnly, sessions.SessionMiddleware):
    pass


class CsrfMiddleware(_PagesOnly, csrf.CsrfViewMiddleware):
    async def process_view(  # type: ignore[override]  # Django adapts either kind of function
        self, request: HttpRequest, *view: Any
    ) -> HttpResponseBase | None:
        if request.path_info.startswith(API_PREFIXES):
            return None
        return cast(
            HttpResponseBase | None, await sync_to_async(super().process_view)(request, *view)
        )


class AuthenticationMiddleware(_PagesOnly, auth.AuthenticationMiddleware):
    pass


class MessageMiddleware(_PagesOnly, messages.MessageMiddleware):
    pass
