"""Why a connection ends: every close code that a client can get from the server."""

# Source for 1xxx: RFC 6455, section 7.4.1, and IANA's registry; 4xxx are this server's own.
CLOSE_CODES = {
    1002: "The client broke the WebSocket protocol.",
    1007: "A text frame was not UTF-8.",
    1009: "A message had more than 64 KB, and was not even read to its end.",
    1011: "The client answered no ping; most likely its network is gone.",
    1012: "The server restarts, or maintenance began. The reason says when to come back.",
    1013: "The table does not answer. The reason says when to come back.",
    4401: "No valid access token was offered, or its session ended: log in or refresh.",
    4403: "The account is banned.",
    4408: "The client sent nothing for 10 minutes; `ping` counts.",
    4413: "A message had more than 16 KB.",
    4426: "This client version is too old: update it.",
    4429: "Too many messages, too many faulty ones, or too many connections of one account.",
    4430: "The client read too slowly to be told everything: return, and start from a snapshot.",
}
