"""Every message of the WebSocket, defined once; the AsyncAPI document comes from here, too."""
