"""What each running server process reports of itself: its settings' revision, and its load.

A process puts one small item every 10 s (2 WCU), and at once after a change of the settings; the
admin reads all of them with one Query. Each report carries the process's last half hour minute by
minute, so charts need no other store.
"""
