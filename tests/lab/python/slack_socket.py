"""Slack's side of Socket Mode: https://docs.slack.dev/apis/events-api/using-socket-mode.

Each address that is handed out lets one connection in. What is pressed goes to one of them, and is acknowledged within three seconds, or it did not work.
"""

import json
import queue
import random
import socket
import threading
import urllib.parse
import uuid

from slack_payload import APP
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

# Slack's own time-out for the acknowledgement of what is pressed.
ACKNOWLEDGED_WITHIN_S = 3


class Sockets:
    """Those that are open."""

    def __init__(self, context):
        self.lock = threading.Lock()
        self.tickets, self.open, self.waiting = set(), {}, {}
        self.scheme = "wss" if context else "ws"
        self.server = serve(self.handle, "127.0.0.1", 0, ssl=context)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def address(self):
        """One that lets one connection in."""
        ticket = uuid.uuid4().hex
        with self.lock:
            self.tickets.add(ticket)
        return f"{self.scheme}://127.0.0.1:{self.server.socket.getsockname()[1]}/link/?ticket={ticket}&app_id={APP}"

    def handle(self, connection):
        """Greets, and takes acknowledgements."""
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(connection.request.path).query)
        with self.lock:
            known = query.get("ticket", [""])[0] in self.tickets
            self.tickets.discard(query.get("ticket", [""])[0])
        if not known:
            connection.close(1008)
            return
        info = {"app_id": APP}
        debug = {"host": "applink-1", "build_number": 1, "approximate_connection_time": 18060}
        name = uuid.uuid4().hex
        with self.lock:
            self.open[name] = connection
            hello = {"type": "hello", "num_connections": len(self.open), "debug_info": debug, "connection_info": info}
        connection.send(json.dumps(hello))
        try:
            for text in connection:
                said = json.loads(text)
                with self.lock:
                    waiting = self.waiting.get(said.get("envelope_id"))
                if waiting:
                    waiting.put(said)
        except ConnectionClosed:
            pass
        finally:
            with self.lock:
                self.open.pop(name, None)

    def press(self, kind, payload):
        """Sends what is of this kind over one connection; whether it was acknowledged, or None if there is none."""
        with self.lock:
            if not self.open:
                return None
            connection = random.choice(list(self.open.values()))
            envelope, answer = str(uuid.uuid4()), queue.Queue()
            self.waiting[envelope] = answer
        connection.send(json.dumps({"type": kind, "envelope_id": envelope, "payload": payload, "accepts_response_payload": kind == "slash_commands"}))
        try:
            return answer.get(timeout=ACKNOWLEDGED_WITHIN_S) == {"envelope_id": envelope}
        except queue.Empty:
            return False

    def drop(self, how):
        """Ends all of them: as Slack does to replace them (`asked`), or without a word (`broken`). Returns how many."""
        with self.lock:
            connections = list(self.open.values())
        for connection in connections:
            if how == "asked":
                connection.send(json.dumps({"type": "disconnect", "reason": "refresh_requested", "debug_info": {"host": "applink-1"}}))
            else:
                connection.socket.shutdown(socket.SHUT_RDWR)
        return len(connections)
