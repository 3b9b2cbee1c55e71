"""A local stand-in for Slack's Web API: `chat.postMessage`, `chat.update`, `chat.postEphemeral`, `views.open`, `users.info`, `auth.test`, `apps.connections.open`, addresses for answers to one person, and nothing else.

Usage: slack_server.py PORT FOLDER http|https

Every message is judged twice before it is accepted: its structure by a JSON Schema generated from Slack's own
TypeScript types, its limits by the models of Slack's own Python SDK. Neither suffices alone: the first knows no
lengths, the second takes unknown types. What the app may call is what its manifest asks for (slack_manifest.py). The answers have the shape of Slack's own.

With `https`, the root certificate to trust lies in FOLDER/ca.pem.

FOLDER/messages.jsonl  accepted messages, one JSON object a line
FOLDER/updates.jsonl   accepted updates, likewise, with the `ts` of the message that each changes
FOLDER/whispers.jsonl  accepted messages to one person
FOLDER/replies.jsonl   accepted answers to one person, where a command or a button of a message to them alone said, each with its `user`
FOLDER/views.jsonl     forms that were opened, each with its `id`
FOLDER/archived.json   names of channels that are archived
FOLDER/users.json      what differs from a full member, by the id of the user
FOLDER/requests.jsonl  every request, with what it was answered
FOLDER/faults.jsonl    what the next requests are answered instead, consumed from the top, a line each:
                       {"status": 429, "retry_after": 1} | {"error": "not_in_channel"} | {"stall_s": 8}

Whoever tests asks POST /lab/press (as slack_payload.py says; over a socket: whether it was acknowledged) and POST /lab/drop (`asked` or `broken`; how many sockets).
"""

import collections
import json
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jsonschema
from certificates import tls_context
from slack_manifest import BOT_SCOPES, COMMANDS, NEEDED
from slack_payload import CHANNELS, TEAM, command, payload
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View
from slack_socket import Sockets

TOKEN, APP_TOKEN = "xoxb-lab-1-secret", "xapp-1-A0LAB-1-secret"
# What chat.postMessage takes and chat.update does not: https://docs.slack.dev/reference/methods/chat.update#arguments
NOT_IN_UPDATES = {"thread_ts", "unfurl_links", "unfurl_media"}

PORT, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
TYPES = json.loads(Path(__file__).with_name("slack_message.schema.json").read_text())


def schema(name):
    """The type of that name."""
    return jsonschema.Draft7Validator({**TYPES, "$ref": f"#/definitions/{name}"})


SCHEMA, EPHEMERAL, FORM, REPLY = (schema(name) for name in ("SweeperMessage", "SweeperEphemeral", "SweeperForm", "SweeperReply"))
# An address takes so many answers, for so long: https://docs.slack.dev/interactivity/handling-user-interaction#message_responses
ANSWERS, ANSWERED_WITHIN_S = 5, 30 * 60
ANSWERED = collections.Counter()
# For so long a press lets a form be opened: https://docs.slack.dev/surfaces/modals#opening
TRIGGERED_S = 3
TRIGGERS = set()
LOCK = threading.Lock()


def judge(message, schema=SCHEMA):
    """What Slack would find wrong with a message, as (error code, detail); None when nothing."""
    blocks = message.get("blocks") or []
    if not message.get("text") and not blocks:
        return "no_text", "neither text nor blocks"
    if len(message.get("text") or "") > 4000:
        return "msg_too_long", "text over 4,000 characters"
    if len(blocks) > 50:
        return "invalid_blocks", "more than 50 blocks"
    fault = next(schema.iter_errors(message), None)
    if fault:
        return "invalid_blocks", f"{'/'.join(map(str, fault.absolute_path))}: {fault.message[:200]}"
    for number, block in enumerate(blocks):
        model = Block.parse(block)
        if model is None:
            return "invalid_blocks", f"block {number}: unknown type {block.get('type')}"
        try:
            model.validate_json()
        except Exception as fault:  # noqa: BLE001: the SDK raises its own and the standard library's
            return "invalid_blocks", f"block {number}: {fault}"
        empty = next((text for text in texts(block) if not text["text"]), None)
        if empty:
            return "invalid_blocks", f"block {number}: an empty text"
        # Documented (docs.slack.dev/reference/block-kit/blocks/section-block), but unknown to the SDK.
        fields = block.get("fields")
        if fields is not None and not 1 <= len(fields) <= 10:
            return "invalid_blocks", f"block {number}: {len(fields)} fields"
        if any(len(field["text"]) > 2000 for field in fields or []):
            return "invalid_blocks", f"block {number}: a field over 2,000 characters"
    if len(json.dumps(message.get("metadata"))) > 8000:
        return "metadata_too_large", "metadata over 8,000 characters"
    return None


def texts(value):
    """Every text object and rich text element within."""
    if isinstance(value, dict):
        if value.get("type") in ("plain_text", "mrkdwn", "text"):
            yield value
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def append(name, value):
    with LOCK, open(FOLDER / name, "a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")


def next_fault():
    with LOCK:
        path = FOLDER / "faults.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        if not lines:
            return {}
        path.write_text("".join(line + "\n" for line in lines[1:]))
        return json.loads(lines[0])


def lacks(path):
    """What Slack says of a method for which the manifest asks no scope; None if it does, or none is needed."""
    needed = NEEDED.get(path.removeprefix("/api/"))
    return {"ok": False, "error": "missing_scope", "needed": needed} if needed and needed not in BOT_SCOPES else None


def channel_of(text):
    """The id of a channel that is named by it or by its name, and what is wrong with that one: (id, error code)."""
    ids = [one for name, one in CHANNELS.items() if text in (name, one)]
    path = FOLDER / "archived.json"
    archived = json.loads(path.read_text()) if path.exists() else []
    if not ids:
        return None, "channel_not_found"
    return ids[0], "is_archived" if any(CHANNELS[name] == ids[0] for name in archived) else None


def posted_at(channel):
    """The names of all messages of the channel of that id: what a reply may answer."""
    path = FOLDER / "messages.jsonl"
    messages = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {message["ts"] for message in messages if channel_of(message["channel"])[0] == channel}


class Handler(BaseHTTPRequestHandler):
    """One request: faults first, then authentication, channel, content."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Requests are logged in requests.jsonl."""

    def do_POST(self):  # noqa: N802: the name is http.server's
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/lab/press":
            press = json.loads(body)
            said = ("slash_commands", command(press)) if "text" in press else ("interactive", payload(press))
            self.send(200, SOCKETS.press(*said), {})
        elif self.path == "/lab/drop":
            self.send(200, SOCKETS.drop(body.decode()), {})
        else:
            self.send(*self.answer(body))

    def send(self, status, answer, headers):
        """Answers, and keeps what was answered."""
        append("requests.jsonl", {"at": time.time(), "path": self.path, "status": status, "answer": answer})
        data = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", "Content-Length": len(data), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):  # noqa: N802: the name is http.server's
        path, _, query = self.path.partition("?")
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            answer = {"ok": False, "error": "invalid_auth"}
        elif (fault := lacks(path)) or path not in ("/api/users.info", "/api/auth.test"):
            answer = fault or {"ok": False, "error": "unknown_method"}
        elif path == "/api/auth.test":
            answer = {"ok": True, "url": "https://lab.slack.com/", "team": "Lab", "user": "sweeper", "team_id": TEAM, "user_id": "U0LAB", "bot_id": "B0LAB"}
        else:
            answer = self.user(urllib.parse.parse_qs(query).get("user", [""])[0])
        self.send(200, answer, {})

    def user(self, name):
        """https://docs.slack.dev/reference/methods/users.info"""
        path = FOLDER / "users.json"
        changes = json.loads(path.read_text()) if path.exists() else {}
        if changes.get(name) == "error":
            return {"ok": False, "error": "user_not_found"}
        member = {"id": name, "team_id": "T0LAB1", "name": name.lower(), "tz": "Europe/Berlin", "deleted": False, "is_admin": False, "is_owner": False}
        member |= {"is_primary_owner": False, "is_restricted": False, "is_ultra_restricted": False, "is_bot": False, "is_app_user": False}
        return {"ok": True, "user": member | changes.get(name, {})}

    def reply(self, body):
        """https://docs.slack.dev/interactivity/handling-user-interaction#message_responses"""
        kind, team, user, at = self.path.removeprefix("/").split("/")
        if kind == "commands" and not COMMANDS:
            return 404, {"ok": False, "error": "no_such_command"}, {}
        with LOCK:
            ANSWERED[self.path] += 1
            is_used = ANSWERED[self.path] > ANSWERS
        if team != TEAM or is_used or time.time_ns() - int(at) > ANSWERED_WITHIN_S * 10**9:
            return 404, {"ok": False, "error": "used_url" if is_used else "expired_url"}, {}
        # Whoever has the address may answer: no token is needed there, and none is to be shown.
        if self.headers.get("authorization") or self.headers.get("content-type") != "application/json; charset=utf-8":
            return 400, {"ok": False, "error": "invalid_post_type"}, {}
        message = json.loads(body)
        fault = judge(message, REPLY)
        if fault:
            return 200, {"ok": False, "error": fault[0], "response_metadata": {"messages": [f"[ERROR] {fault[1]}"]}}, {}
        append("replies.jsonl", {"user": user, **message})
        return 200, {"ok": True}, {}

    def whisper(self, message):
        """https://docs.slack.dev/reference/methods/chat.postEphemeral"""
        if message.get("channel") not in CHANNELS.values():
            return 200, {"ok": False, "error": "channel_not_found"}, {}
        fault = next(EPHEMERAL.iter_errors(message), None)
        if fault or len(message["text"]) > 4000:
            return 200, {"ok": False, "error": "invalid_arguments"}, {}
        append("whispers.jsonl", message)
        return 200, {"ok": True, "message_ts": f"{time.time():.6f}"}, {}

    def form(self, asked):
        """https://docs.slack.dev/reference/methods/views.open"""
        fault = next(FORM.iter_errors(asked), None)
        if fault:
            return 200, {"ok": False, "error": "invalid_arguments", "response_metadata": {"messages": [f"[ERROR] {fault.message[:200]}"]}}, {}
        view, trigger = asked["view"], asked["trigger_id"]
        try:
            View(**view).validate_json()
            for block in view["blocks"]:
                Block.parse(block).validate_json()
        except Exception as fault:  # noqa: BLE001: the SDK raises its own and the standard library's
            return 200, {"ok": False, "error": "invalid_arguments", "response_metadata": {"messages": [f"[ERROR] {fault}"]}}, {}
        if time.time_ns() - int(trigger.split(".")[1]) > TRIGGERED_S * 10**9:
            return 200, {"ok": False, "error": "expired_trigger_id"}, {}
        with LOCK:
            used, _ = trigger in TRIGGERS, TRIGGERS.add(trigger)
        if used:
            return 200, {"ok": False, "error": "exchanged_trigger_id"}, {}
        view = {"id": f"V0LAB{len(TRIGGERS)}", **view}
        append("views.jsonl", view)
        opened = {"team_id": "T0LAB1", "state": {"values": {}}, "hash": "1.lab", "previous_view_id": None, "root_view_id": view["id"]}
        return 200, {"ok": True, "view": {**view, **opened}}, {}

    def answer(self, body):
        fault = next_fault()
        if fault.get("stall_s"):
            time.sleep(fault["stall_s"])
        if fault.get("status") == 429:
            return 429, {"ok": False, "error": "ratelimited"}, {"Retry-After": fault["retry_after"]}
        if fault.get("status"):
            return fault["status"], {"ok": False, "error": "internal_error"}, {}
        if fault.get("error"):
            return 200, {"ok": False, "error": fault["error"]}, {}
        if self.path.startswith(("/commands/", "/actions/")):
            return self.reply(body)
        if fault := lacks(self.path):
            return 200, fault, {}
        if self.path == "/api/apps.connections.open":
            known = self.headers.get("authorization") == f"Bearer {APP_TOKEN}"
            return 200, {"ok": True, "url": SOCKETS.address()} if known else {"ok": False, "error": "invalid_auth"}, {}
        if self.path not in ("/api/chat.postMessage", "/api/chat.update", "/api/chat.postEphemeral", "/api/views.open"):
            return 200, {"ok": False, "error": "unknown_method"}, {}
        authorization = self.headers.get("authorization")
        if not authorization:
            return 200, {"ok": False, "error": "not_authed"}, {}
        if authorization != f"Bearer {TOKEN}":
            return 200, {"ok": False, "error": "invalid_auth"}, {}
        if self.headers.get("content-type") != "application/json; charset=utf-8":
            return 200, {"ok": False, "error": "invalid_post_type"}, {}
        message = json.loads(body)
        if self.path == "/api/chat.update":
            return self.update(message)
        if self.path == "/api/chat.postEphemeral":
            return self.whisper(message)
        if self.path == "/api/views.open":
            return self.form(message)
        channel, refused = channel_of(message.get("channel"))
        if refused:
            return 200, {"ok": False, "error": refused}, {}
        fault = judge(message)
        if fault:
            return 200, {"ok": False, "error": fault[0], "response_metadata": {"messages": [f"[ERROR] {fault[1]}"]}}, {}
        thread = message.get("thread_ts")
        if thread and thread not in posted_at(channel):
            return 200, {"ok": False, "error": "thread_not_found"}, {}
        if message.get("reply_broadcast") and not thread:
            return 200, {"ok": False, "error": "invalid_arguments"}, {}
        ts = f"{time.time():.6f}"
        append("messages.jsonl", {"ts": ts, **message})
        posted = {"type": "message", "subtype": "bot_message", "text": message["text"], "ts": ts, "bot_id": "B0LAB", "blocks": message["blocks"]}
        return 200, {"ok": True, "channel": channel, "ts": ts, "message": posted}, {}

    def update(self, message):
        """Judged as a message is; the channel must be named by its id, and the message be there."""
        channel, refused = channel_of(message.get("channel"))
        if refused or message["channel"] != channel:
            return 200, {"ok": False, "error": refused or "channel_not_found"}, {}
        ts = message.pop("ts", None)
        unknown = NOT_IN_UPDATES & message.keys()
        fault = ("invalid_arguments", f"{unknown}") if unknown else judge(message)
        if fault:
            return 200, {"ok": False, "error": fault[0], "response_metadata": {"messages": [f"[ERROR] {fault[1]}"]}}, {}
        if ts not in posted_at(channel):
            return 200, {"ok": False, "error": "message_not_found"}, {}
        append("updates.jsonl", {"ts": ts, **message})
        updated = {"text": message["text"], "user": "U0LAB", "blocks": message["blocks"]}
        return 200, {"ok": True, "channel": channel, "ts": ts, "text": message["text"], "message": updated}, {}


SERVER = ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
CONTEXT = tls_context(FOLDER) if sys.argv[3] == "https" else None
SOCKETS = Sockets(CONTEXT)
if CONTEXT:
    # Not in accept(), where a client that never speaks would keep all others waiting.
    SERVER.socket = CONTEXT.wrap_socket(SERVER.socket, server_side=True, do_handshake_on_connect=False)
print("listening", flush=True)
SERVER.serve_forever()
