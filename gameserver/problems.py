"""Errors as RFC 9457 `application/problem+json`, whatever part of the stack they come from."""

import uuid
from collections.abc import Awaitable, Callable

import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from gameserver.errors import (
    GameServerError,
    MalformedRequest,
    MethodNotAllowed,
    NotAuthenticated,
    NotFound,
)

CONTENT_TYPE = "application/problem+json"
REQUEST_ID_HEADER = "X-Request-ID"

_log = structlog.get_logger(__name__)


def problem(error: GameServerError) -> JsonResponse:
    """Shape a domain error: `type`, `title`, `status`, `detail`, `code`, and its extra fields.

    `retry_after` (seconds) becomes a Retry-After header, too. The challenge goes with a missing or
    dead token only: clients answer one by a refresh, which mends no wrong password.
    """
    body = {
        "type": "about:blank",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        **error.extra,
    }
    response = JsonResponse(body, status=error.status, content_type=CONTENT_TYPE)
    if "retry_after" in error.extra:
        response["Retry-After"] = str(error.extra["retry_after"])
    if isinstance(error, NotAuthenticated):
        response["WWW-Authenticate"] = "Bearer"
    return _unlogged(response)


def internal_error(error: Exception, request_id: str) -> JsonResponse:
    """Log an unexpected error with its trace; tell the client its id and nothing else."""
    _log.error("internal_error", request_id=request_id, exc_info=error)
    return _internal_error(request_id)


def _internal_error(request_id: str) -> JsonResponse:
    body = {
        "type": "about:blank",
        "title": "Something went wrong on the server.",
        "status": 500,
        "detail": "The error was logged under this request's id.",
        "code": "internal_error",
        "request_id": request_id,
    }
    return _unlogged(JsonResponse(body, status=500, content_type=CONTENT_TYPE))


def _unlogged(response: JsonResponse) -> JsonResponse:
    # Django would log any 5xx as an error: a refusal is none (a kill switch is no outage), and a
    # fault has been logged with its trace by then.
    response._has_been_logged = True  # type: ignore[attr-defined]  # what `log_response` looks at
    return response


def unknown_path(request: HttpRequest) -> HttpResponse:
    """Answer any /api path that is not in the URL map."""
    return problem(NotFound())


def _as_problem(response: HttpResponseBase, request_id: str) -> HttpResponseBase:
    """Translate what Django answers before any view: a wrong method or host, a fault in between."""
    if response.status_code < 400 or response.headers.get("Content-Type") == CONTENT_TYPE:
        return response
    if response.status_code >= 500:
        # Django has logged it, with the request's id.
        return _internal_error(request_id)
    if response.status_code == 405:
        answer = problem(MethodNotAllowed())
        answer["Allow"] = response.headers.get("Allow", "")
        return answer
    return problem(NotFound() if response.status_code == 404 else MalformedRequest())


class ApiMiddleware:
    """Give every request an id, and Django's own errors under /api the shape of the others.

    HEAD under /api is GET without the body.
    """

    async_capable = True
    sync_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = uuid.uuid4().hex
        request.META["REQUEST_ID"] = request_id
        is_api = request.path_info.startswith("/api/")
        is_head = is_api and request.method == "HEAD"
        if is_head:
            request.method = "GET"
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = await self.get_response(request)
        if is_api:
            response = _as_problem(response, request_id)
        if is_head and isinstance(response, HttpResponse):
            # The length that GET would have stays in the headers.
            response.content = b""
        response[REQUEST_ID_HEADER] = request_id
        return response
