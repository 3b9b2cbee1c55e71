"""The app's manifests, as people give them to Slack: what the app may call, and which commands it has.

Usage: slack_manifest.py

Prints both manifests, with what Slack's own schema finds wrong with each, as JSON.

The schema is Slack's (https://github.com/slackapi/manifest-schema, version 1, which Slack takes where none is named); its licence is in slack_manifest.schema.LICENSE.
"""

import json
from pathlib import Path

import jsonschema
import yaml

HERE = Path(__file__).parent
SCHEMA = jsonschema.Draft7Validator(json.loads((HERE / "slack_manifest.schema.json").read_text()))
DOCS = HERE.parents[2] / "docs"
NAMES = ("slack-app-manifest.yaml", "slack-app-manifest-socket-mode.yaml")
MANIFESTS = {name: yaml.safe_load((DOCS / name).read_text()) for name in NAMES}
REQUESTS = MANIFESTS[NAMES[0]]
BOT_SCOPES = set(REQUESTS["oauth_config"]["scopes"]["bot"])
COMMANDS = {command["command"] for command in REQUESTS["features"].get("slash_commands", [])}
# The bot scope that each method needs, None where it needs none: https://docs.slack.dev/reference/methods.
NEEDED = {
    "auth.test": None,
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "users.info": "users:read",
    "views.open": None,
    # Of the app's own token, and no scope of the bot's: connections:write.
    "apps.connections.open": None,
}


def main():
    """Prints them."""
    wrong = {name: [fault.message for fault in SCHEMA.iter_errors(manifest)] for name, manifest in MANIFESTS.items()}
    # Three that Slack refuses: the schema must, too.
    bad = [{**REQUESTS, "oauth_config": {"scopes": {"bot": "chat:write"}}}, {**REQUESTS, "display_information": {}}]
    bad.append({**REQUESTS, "features": {"slash_commands": [{"command": "/sweeper"}]}})
    refused = [not SCHEMA.is_valid(one) for one in bad]
    print(json.dumps({"manifests": MANIFESTS, "wrong": wrong, "needed": NEEDED, "refused": refused}))


if __name__ == "__main__":
    main()
