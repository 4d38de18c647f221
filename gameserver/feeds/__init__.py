r"""How realtime stays true and cheap.

The table is the only truth. Services give hints after their writes, hints may be lost, and a feed
answers each by reading what it watches again:

    service -> hints.give -> [bridge -> channel layer -> bridge of every other process]
                   \-> feed: one strong read -> the difference, serialised once -> connections

- `frames` turns a message into the bytes of a WebSocket frame, once for all receivers.
- `connection` is one client: a bounded way out, and the rules by which it is closed.
- `feed` is one watched thing in one process: its last state and its connections.
- `bridge` carries hints and relayed messages between processes, through the channel layer.
- `limits` counts what one client sends.
"""
