"""What Slack tells an app of a button that somebody pressed: https://docs.slack.dev/reference/interaction-payloads/block_actions-payload.

A press is a JSON object: `message` (as chat.postMessage was sent it, with its `ts`), `action_id`, `user`, and, where it differs from what is usual,
`team` (the person's workspace) and `value` (in place of the button's).
"""

import time

APP, TEAM, CHANNEL = "A0LAB", "T0LAB1", "C0LABWASTE"


def buttons(message):
    """Every button of a message."""
    return [element for block in message["blocks"] if block["type"] == "actions" for element in block["elements"]]


def payload(press):
    """What Slack says of it."""
    message = press["message"]
    button = next(button for button in buttons(message) if button["action_id"] == press["action_id"])
    action = {key: value for key, value in button.items() if key != "confirm"}
    action |= {"block_id": "b1", "action_ts": f"{time.time():.6f}", "value": press.get("value", button["value"])}
    user = {"id": press["user"], "username": press["user"].lower(), "name": press["user"].lower(), "team_id": press.get("team", TEAM)}
    return {
        "type": "block_actions",
        "user": user,
        "api_app_id": APP,
        "token": "not-used-any-more",
        "container": {"type": "message", "message_ts": message["ts"], "channel_id": CHANNEL, "is_ephemeral": False},
        "trigger_id": "1.2.3",
        "team": {"id": TEAM, "domain": "lab"},
        "enterprise": None,
        "is_enterprise_install": False,
        "channel": {"id": CHANNEL, "name": "waste"},
        "message": {"type": "message", "bot_id": "B0LAB", "text": message["text"], "user": "U0LAB", "ts": message["ts"], "app_id": APP, "team": TEAM, "blocks": message["blocks"]},
        "state": {"values": {}},
        "response_url": "https://hooks.slack.com/actions/T0LAB1/1/x",
        "actions": [action],
    }
