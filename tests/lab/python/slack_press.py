"""Presses a button of a message, or types a command, as Slack tells an app of it: a signed request with the interaction's payload, or the command's fields.

Usage: slack_press.py URL < PRESS

PRESS is as slack_payload.py says, with `secret` (the signing secret) and, where it differs from what is usual, `at` (seconds since 1970, in place of now), `signature`, `body`
(in place of what it says) and `times` (the very same request, so often).
Prints the answer's status, and what it says if it says anything. Signed by Slack's own Python SDK.
"""

import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from slack_payload import command, payload
from slack_sdk.signature import Clock, SignatureVerifier


def main():
    """Sends it, and prints what came back."""
    press = json.load(sys.stdin)
    body = urllib.parse.urlencode(command(press) if "text" in press else {"payload": json.dumps(payload(press))})
    body = press.get("body", body)
    at = str(int(press.get("at", time.time())))
    signature = press.get("signature") or SignatureVerifier(press["secret"], Clock()).generate_signature(timestamp=at, body=body)
    headers = {"Content-Type": "application/x-www-form-urlencoded", "X-Slack-Request-Timestamp": at, "X-Slack-Signature": signature}
    request = urllib.request.Request(sys.argv[1], data=body.encode(), headers=headers)
    for _ in range(press.get("times", 1) - 1):
        urllib.request.urlopen(request, timeout=10).close()
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            print(answer.status, answer.read().decode())
    except urllib.error.HTTPError as refused:
        print(refused.code)


main()
