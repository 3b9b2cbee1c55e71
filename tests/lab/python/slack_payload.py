"""What Slack tells an app of a button that somebody pressed, a form that somebody filled in, or a command that somebody typed:
https://docs.slack.dev/reference/interaction-payloads/block_actions-payload, https://docs.slack.dev/reference/interaction-payloads/view-interactions-payload and
https://docs.slack.dev/interactivity/implementing-slash-commands#app_command_handling.

A press is a JSON object: `message` (as chat.postMessage was sent it, with its `ts`), `action_id`, `user`, and, where it differs from what is usual,
`team` (the person's workspace), `value` (in place of the button's), `option` (the label of what was chosen from a list) and `button` (one that the message does not have).
Of a message about several plans `plan` names the one whose button is pressed. `replies_at` is where the stand-in takes answers to whoever presses a button of a message that everybody sees.
A button of a message that somebody alone sees has `answers_at` (where the stand-in takes answers), too.
A form that was filled in has `view` (as views.open was sent it, with its `id`) and `values` (of each block) in place of the message and the action.
A command has `text`, `user`, `answers_at`, and, where it differs from what is usual, `team`, `command` and `response_url`.
"""

import json
import time
import uuid

APP, TEAM = "A0LAB", "T0LAB1"
# The channels that the app is in, by their names.
CHANNELS = {"#waste": "C0LABWASTE", "#genomics": "C0LABGENOMICS", "#physics": "C0LABPHYSICS", "#on-call": "C0LABONCALL"}
# Where people type commands, and see the answers: the app is not in it.
ELSEWHERE = "C0LABTALK"


def buttons(message):
    """Every button of a message."""
    return [element for block in message["blocks"] if block["type"] == "actions" for element in block["elements"]]


def trigger():
    """By which a form may be opened once, for three seconds: what is between the dots is the second of the press."""
    return f"{uuid.uuid4().int % 10**12}.{time.time_ns()}.lab"


def answered_at(press, kind):
    """Where an answer is taken for half an hour: whose it is, and since when, are in the address."""
    return f"{press['answers_at']}/{kind}/{TEAM}/{press['user']}/{time.time_ns()}"


def command(press):
    """The fields of a command."""
    return {
        "token": "not-used-any-more",
        "team_id": press.get("team", TEAM),
        "team_domain": "lab",
        "channel_id": ELSEWHERE,
        "channel_name": "talk",
        "user_id": press["user"],
        "user_name": press["user"].lower(),
        "command": press.get("command", "/sweeper"),
        "text": press["text"],
        "api_app_id": APP,
        "is_enterprise_install": "false",
        "response_url": press.get("response_url") or answered_at(press, "commands"),
        "trigger_id": trigger(),
    }


def action_of(press):
    """The button, or the list with what was chosen from it."""
    is_its = lambda button: button["action_id"] == press["action_id"] and press.get("plan", "") in json.dumps(button)  # noqa: E731
    element = press.get("button") or next(button for button in buttons(press["message"]) if is_its(button))
    action = {key: value for key, value in element.items() if key not in ("confirm", "options")}
    action |= {"block_id": "b1", "action_ts": f"{time.time():.6f}"}
    if element["type"] == "static_select":
        return action | {"selected_option": next(option for option in element["options"] if option["text"]["text"] == press["option"])}
    return action | {"value": press.get("value", element["value"])}


def payload(press):
    """What Slack says of it."""
    user = {"id": press["user"], "username": press["user"].lower(), "name": press["user"].lower(), "team_id": press.get("team", TEAM)}
    common = {
        "user": user,
        "api_app_id": APP,
        "token": "not-used-any-more",
        "trigger_id": trigger(),
        "team": {"id": TEAM, "domain": "lab"},
        "enterprise": None,
        "is_enterprise_install": False,
    }
    if "view" in press:
        return common | {"type": "view_submission", "view": filled_in(press["view"], press["values"]), "response_urls": []}
    message = press["message"]
    if "answers_at" in press:
        return common | {
            "type": "block_actions",
            "container": {"type": "message", "message_ts": f"{time.time():.6f}", "channel_id": ELSEWHERE, "is_ephemeral": True},
            "channel": {"id": ELSEWHERE, "name": "talk"},
            "state": {"values": {}},
            "response_url": answered_at(press, "actions"),
            "actions": [action_of(press)],
        }
    # An update says nothing of the name.
    channel = CHANNELS.get(message["channel"], message["channel"])
    name = next(name for name, one in CHANNELS.items() if one == channel)
    return common | {
        "type": "block_actions",
        "container": {"type": "message", "message_ts": message["ts"], "channel_id": channel, "is_ephemeral": False},
        "channel": {"id": channel, "name": name.removeprefix("#")},
        "message": {"type": "message", "bot_id": "B0LAB", "text": message["text"], "user": "U0LAB", "ts": message["ts"], "app_id": APP, "team": TEAM, "blocks": message["blocks"]},
        "state": {"values": {}},
        "response_url": answered_at({**press, "answers_at": press["replies_at"]}, "actions") if "replies_at" in press else "https://hooks.slack.com/actions/T0LAB1/1/x",
        "actions": [action_of(press)],
    }


def filled_in(view, values):
    """A form as it comes back: what each block holds, below the names of the block and of what is in it."""
    elements = {block["block_id"]: block["element"] for block in view["blocks"] if block["type"] == "input"}
    state = {name: {element["action_id"]: {"type": element["type"], **values[name]}} for name, element in elements.items()}
    common = {"team_id": TEAM, "app_id": APP, "app_installed_team_id": TEAM, "bot_id": "B0LAB", "previous_view_id": None, "root_view_id": view["id"]}
    flags = {"clear_on_close": False, "notify_on_close": False, "external_id": "", "hash": f"{time.time():.6f}.lab"}
    return {**view, **common, **flags, "state": {"values": state}}
