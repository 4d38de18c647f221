"""The WebSocket: `socket` lets clients in and reads them, `commands` does what they ask.

`realtime` is what all connections of a process share: feeds, the bridge to other processes, the
seats of connected players (`seats`) and the threads that tidy up (`upkeep`).
"""
