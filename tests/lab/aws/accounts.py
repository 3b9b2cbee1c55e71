"""Who a request comes from, and which roles may be assumed: what AWS checks of credentials and moto does not.

Until `set_roles` is called every role can be assumed, as moto has it. After it only those that it names, and one with an
external id only with that id; `account` makes a role open another account than its ARN says. Credentials that `expire` has seen are refused from then on, whatever they are used for.
"""

import re
import threading
import urllib.parse

from moto.iam.models import get_account_id_from

ROLE = re.compile(r"arn:aws:iam::\d{12}:role/.+")


class Accounts:
    def __init__(self):
        self.roles, self.expired, self.lock = None, set(), threading.Lock()

    def set_roles(self, roles):
        with self.lock:
            self.roles = {role["arn"]: role for role in roles}

    def expire(self, access_key):
        with self.lock:
            self.expired.add(access_key)

    @staticmethod
    def of(access_key):
        return get_account_id_from(access_key)

    def refusal(self, access_key, service, action, wanted):
        """(status, code, message), or None for a request that AWS would let in."""
        with self.lock:
            if access_key in self.expired:
                # EC2 and the query APIs do not call it the same.
                code = "RequestExpired" if service == "ec2" else "ExpiredToken"
                return 400 if service == "ec2" else 403, code, "The security token included in the request is expired"
            if (service, action) == ("sts", "AssumeRole") and self.roles is not None:
                arn = wanted.get("RoleArn", "")
                external_id = self.roles.get(arn, {}).get("external_id")
                known = ROLE.fullmatch(arn) and arn in self.roles
                if not known or external_id not in (None, wanted.get("ExternalId")):
                    who = f"User: {access_key} is not authorized to perform: sts:AssumeRole on resource: {arn}"
                    return 403, "AccessDenied", who
        return None

    def redirected(self, body, action, wanted):
        """The request as it is, or for a role that opens another account the one that moto needs for it."""
        role = (self.roles or {}).get(wanted.get("RoleArn")) if action == "AssumeRole" else None
        if not role or not role.get("account"):
            return body
        return urllib.parse.urlencode(wanted | {"RoleArn": re.sub(r"\d{12}", role["account"], role["arn"])}).encode()
