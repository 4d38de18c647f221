"""Every error the product raises on purpose: a stable code, an HTTP status, and what to do."""

from typing import Any, ClassVar


class GameServerError(Exception):
    """Base of all domain errors. Edges translate it once: problem+json or a WebSocket error."""

    code: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]

    def __init__(self, detail: str | None = None, **extra: Any) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.extra = extra


class ValidationFailed(GameServerError):
    """The request is well-formed but breaks a rule on its fields."""

    code = "validation_error"
    status = 422
    title = "The request is not valid."


class InvalidCursor(GameServerError):
    """A cursor was altered, or belongs to another query."""

    code = "invalid_cursor"
    status = 400
    title = "This cursor does not belong to this list. Start again without a cursor."


class MalformedRequest(GameServerError):
    """The request is no HTTP or JSON that this API reads."""

    code = "malformed_request"
    status = 400
    title = "The request cannot be read."


class BodyTooLarge(GameServerError):
    """The body is larger than any request of this API."""

    code = "body_too_large"
    status = 413
    title = "The body is too large (64 KB at most)."


class NotFound(GameServerError):
    """No such path."""

    code = "not_found"
    status = 404
    title = "There is nothing at this path."


class MethodNotAllowed(GameServerError):
    """The path exists, but not for this method."""

    code = "method_not_allowed"
    status = 405
    title = "This path does not answer this method."


class UsernameTaken(GameServerError):
    """Another account has this canonical username."""

    code = "username_taken"
    status = 409
    title = "This username is taken."


class InvalidCredentials(GameServerError):
    """Unknown user or wrong password; the two are not told apart."""

    code = "invalid_credentials"
    status = 401
    title = "Username or password is wrong."


class NotAuthenticated(GameServerError):
    """The token is missing, expired, revoked or forged."""

    code = "not_authenticated"
    status = 401
    title = "A valid access token is needed."


class Banned(GameServerError):
    """An operator banned this account. Extra: `until` (RFC 3339, or null for good)."""

    code = "banned"
    status = 403
    title = "This account is banned."


class GameNotFound(GameServerError):
    """No game has this id."""

    code = "game_not_found"
    status = 404
    title = "There is no such game."


class PlayerNotFound(GameServerError):
    """No player has this username."""

    code = "player_not_found"
    status = 404
    title = "There is no such player."


class GameFull(GameServerError):
    """Every seat is taken."""

    code = "game_full"
    status = 409
    title = "Every seat of this game is taken."


class GameNotOpen(GameServerError):
    """The game's state does not allow this: it has started, ended, or not started yet."""

    code = "game_not_open"
    status = 409
    title = "The game's state does not allow this."


class AlreadyInGame(GameServerError):
    """The player sits in another game. Extra: `game_id`."""

    code = "already_in_game"
    status = 409
    title = "You are in another game. Leave it first."


class NotInGame(GameServerError):
    """The player does not sit in this game."""

    code = "not_in_game"
    status = 409
    title = "This player is not in this game."


class NotHost(GameServerError):
    """Only the host may do this."""

    code = "not_host"
    status = 403
    title = "Only the game's host may do this."


class NotReferee(GameServerError):
    """Only a referee account may report for others."""

    code = "not_referee"
    status = 403
    title = "Only a referee may report this elimination."


class NotEnoughPlayers(GameServerError):
    """Fewer than `min_players` are seated."""

    code = "not_enough_players"
    status = 409
    title = "Not enough players to start."


class NotAlive(GameServerError):
    """The killer or the victim is no longer in the running game."""

    code = "not_alive"
    status = 409
    title = "This player has already been eliminated."


class WrongJoinCode(GameServerError):
    """A private game needs its join code."""

    code = "wrong_join_code"
    status = 403
    title = "This game is private: give its join code."


class IdempotencyKeyReused(GameServerError):
    """The key was used for another request body."""

    code = "idempotency_key_reused"
    status = 409
    title = "This Idempotency-Key was used for another request."


class FeatureDisabled(GameServerError):
    """A kill switch is off. Extra: `flag`."""

    code = "feature_disabled"
    status = 503
    title = "This feature is switched off at the moment."


class Maintenance(GameServerError):
    """The maintenance switch is on. Extra: `retry_after` (seconds)."""

    code = "maintenance"
    status = 503
    title = "The game server is in maintenance."


class ClientTooOld(GameServerError):
    """`X-Client-Version` is older than `min_client_version`."""

    code = "client_too_old"
    status = 426
    title = "This client is too old. Update it."


class RateLimited(GameServerError):
    """Too many requests. Extra: `retry_after` (seconds)."""

    code = "rate_limited"
    status = 429
    title = "Too many requests."


class TryAgain(GameServerError):
    """Contention, throttling or an outage outlasted the retries. Extra: `retry_after` (seconds)."""

    code = "try_again"
    status = 503
    title = "The server could not finish this in time. Try again."

    def __init__(self, detail: str | None = None, **extra: Any) -> None:
        super().__init__(detail, **{"retry_after": 1, **extra})


class UnknownType(GameServerError):
    """WebSocket only: no message has this `type`."""

    code = "unknown_type"
    status = 400
    title = "There is no message of this type."


class InternalError(GameServerError):
    """Something went wrong on the server; it was logged."""

    code = "internal_error"
    status = 500
    title = "Something went wrong on the server."
