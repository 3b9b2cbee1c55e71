"""A real SMTP submission server (aiosmtpd) that keeps what it takes in a Maildir.

Usage: smtp_server.py PORT FOLDER starttls|implicit|plain

`starttls` and `implicit` take a message only over TLS and after a login. The certificate is made at the first start and
signed by an authority made for it alone, whose own certificate lies in FOLDER/ca.pem. `plain` takes anything.

FOLDER/maildir       accepted messages
FOLDER/attempts.jsonl  every message that got as far as its content, with the reply
FOLDER/faults.jsonl  what the next messages are answered instead, consumed from the top, a line each:
                     {"reply": "451 4.3.0 try again later"} | {"stall_s": 8}
"""

import asyncio
import json
import sys
from pathlib import Path

from aiosmtpd.handlers import Mailbox
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword
from certificates import tls_context

USER, PASSWORD = b"sweeper", b"lab-secret"
PORT, FOLDER, MODE = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]


def authenticate(_server, _session, _envelope, _mechanism, data):
    known = isinstance(data, LoginPassword) and (data.login, data.password) == (USER, PASSWORD)
    return AuthResult(success=known, handled=False)


def next_fault():
    path = FOLDER / "faults.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines:
        return {}
    path.write_text("".join(line + "\n" for line in lines[1:]))
    return json.loads(lines[0])


class Handler(Mailbox):
    """Keeps messages, unless a fault comes first."""

    async def handle_DATA(self, server, session, envelope):  # noqa: N802: the name is aiosmtpd's
        fault = next_fault()
        if fault.get("stall_s"):
            await asyncio.sleep(fault["stall_s"])
        reply = fault.get("reply") or await super().handle_DATA(server, session, envelope)
        with open(FOLDER / "attempts.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"to": envelope.rcpt_tos, "reply": reply}) + "\n")
        return reply


async def main():
    handler, loop = Handler(FOLDER / "maildir"), asyncio.get_running_loop()
    login = {"auth_required": True, "authenticator": authenticate}
    context = None if MODE == "plain" else tls_context(FOLDER)
    options = {
        "starttls": {"tls_context": context, "require_starttls": True, **login},
        # aiosmtpd offers logins only after a STARTTLS of its own unless told that TLS is there already.
        "implicit": {"auth_require_tls": False, **login},
        "plain": {},
    }[MODE]
    server = await loop.create_server(
        lambda: SMTP(handler, hostname="mail.lab", loop=loop, **options),
        "127.0.0.1",
        PORT,
        ssl=context if MODE == "implicit" else None,
    )
    print("listening", flush=True)
    await server.serve_forever()


asyncio.run(main())
