"""CloudTrail's LookupEvents over a table of the scenario's making, held to AWS's own model on both sides (standin.py).

moto has no such call. The events are made after AWS's documentation of `RunInstances` and `SubmitJob` records, not recorded. By hand, since AWS's model
holds them as prose: at most 50 events a page, one lookup attribute, 90 days, newest first.
<https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference-user-identity.html>
"""

import datetime
import json
import uuid

import standin
from ec2 import time_of

PAGE, DAYS = 50, 90


class Trail:
    def __init__(self):
        self.events = {}

    def seed(self, account, region, launches):
        """Adds events; an entry has `at`, `instances` (ids) and `user_identity`, and may have `job` (an id: it was submitted, and no instance started), `error_code`,
        `source` and `raw`, which is said in the place of the whole record."""
        for entry in launches:
            at, id = time_of(entry["at"]), str(uuid.uuid4())
            items = [{"instanceId": instance, "currentState": {"code": 0, "name": "pending"}} for instance in entry["instances"]]
            failed, job = entry.get("error_code"), entry.get("job")
            name = "SubmitJob" if job else "RunInstances"
            if job:
                asked, answer = {"jobName": f"align-{job}", "jobQueue": "busy", "jobDefinition": "align:3"}, {"jobId": job, "jobName": f"align-{job}"}
            else:
                asked, answer = {"instancesSet": {"items": [{"minCount": 1, "maxCount": len(items) or 1}]}}, {"requestId": id, "instancesSet": {"items": items}}
            record = {
                "eventVersion": "1.10",
                "userIdentity": entry["user_identity"],
                "eventTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "eventSource": "batch.amazonaws.com" if job else "ec2.amazonaws.com",
                "eventName": name,
                "awsRegion": region,
                "sourceIPAddress": entry.get("source") or "203.0.113.7",
                "userAgent": "aws-cli/2.31.0",
                "requestParameters": asked,
                "responseElements": None if failed else answer,
                "eventID": id,
                "readOnly": False,
                "eventType": "AwsApiCall",
                "managementEvent": True,
                "recipientAccountId": account,
                "eventCategory": "Management",
            }
            if failed:
                record["errorCode"] = failed
            told = {
                "EventId": id,
                "EventName": name,
                "ReadOnly": "false",
                "EventTime": at,
                "EventSource": record["eventSource"],
                "Resources": [{"ResourceType": "AWS::EC2::Instance", "ResourceName": id} for id in entry["instances"]],
                "CloudTrailEvent": entry.get("raw") or json.dumps(record),
            }
            self.events.setdefault((account, region), []).append(told)
            self.events[account, region].sort(key=lambda event: event["EventTime"], reverse=True)

    def lookup_events(self, account, region, asked):
        attributes = asked.get("LookupAttributes") or []
        name = attributes[0]["AttributeValue"] if len(attributes) == 1 and attributes[0]["AttributeKey"] == "EventName" else None
        if name not in ("RunInstances", "SubmitJob"):
            raise standin.Refused("InvalidLookupAttributesException", "the table holds RunInstances and SubmitJob alone")
        size = asked.get("MaxResults", PAGE)
        if not 1 <= size <= PAGE:
            raise standin.Refused("InvalidMaxResultsException", f"{size} results; AWS gives {PAGE}")
        now = datetime.datetime.now(datetime.UTC)
        oldest = now - datetime.timedelta(days=DAYS)
        start = max(instant(asked.get("StartTime"), oldest), oldest)
        end = instant(asked.get("EndTime"), now)
        if start > end:
            raise standin.Refused("InvalidTimeRangeException", "it ends before it begins")
        found = [event for event in self.events.get((account, region), []) if event["EventName"] == name and start <= event["EventTime"] <= end]
        first = int(asked.get("NextToken") or 0)
        following = {"NextToken": str(first + size)} if first + size < len(found) else {}
        return {"Events": found[first : first + size]} | following


def instant(time, otherwise):
    return otherwise if time is None else datetime.datetime.fromtimestamp(float(time), datetime.UTC)
