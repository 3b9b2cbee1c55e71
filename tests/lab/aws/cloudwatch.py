"""CloudWatch's GetMetricData over a table of the scenario's making, held to AWS's own model on both sides (standin.py).

moto has the call for JSON and query requests, not for CBOR, which is all that this SDK speaks, and it looks through every data
point for each query: 50,000 instances with three metrics would take hours. So the points stand in a table here, where
instances that are alike share one series. By hand, since AWS's model holds them as prose: at most 500 queries a call,
periods of whole minutes, at most 100,800 points a page, a series that does not fit is `PartialData` and goes on with the
next page, and nothing is answered from outside of [StartTime, EndTime).
"""

import datetime

import standin
from ec2 import time_of

QUERIES, POINTS = 500, 100_800


class Metrics:
    def __init__(self):
        self.series, self.statuses, self.points = {}, {}, POINTS

    def seed(self, account, region, machines):
        """Gives instances (`ids`) series of `period_s` from `from` on: `metrics` is {name: [value or null, ...]}. `statuses` is
        {name: status}, where a metric is not answered as complete."""
        for entry in machines:
            start, period = time_of(entry["from"]).timestamp(), entry["period_s"]
            points = {
                name: [(start + n * period, float(value)) for n, value in enumerate(values) if value is not None]
                for name, values in entry["metrics"].items()
            }
            for id in entry["ids"]:
                self.series[account, region, id] = points
                self.statuses[account, region, id] = entry.get("statuses") or {}

    def get_metric_data(self, account, region, asked):
        queries, start, end = asked["MetricDataQueries"], instant(asked["StartTime"]), instant(asked["EndTime"])
        if len(queries) > QUERIES:
            raise standin.Refused("ValidationError", f"{len(queries)} queries; AWS takes {QUERIES}")
        if len({query["Id"] for query in queries}) < len(queries):
            raise standin.Refused("ValidationError", "two queries of one name")
        if start >= end:
            raise standin.Refused("ValidationError", "it ends before it begins")
        token = asked.get("NextToken") or "0/0"
        first, skipped = (int(part) for part in token.split("/"))
        room, results, following = min(asked.get("MaxDatapoints", POINTS), self.points), [], None
        for number in range(first, len(queries)):
            query, skip = queries[number], skipped if number == first else 0
            found, status = self.of(account, region, query["MetricStat"], start, end)
            if asked.get("ScanBy") != "TimestampAscending":
                found = found[::-1]
            part, room = found[skip : skip + room], room - len(found[skip : skip + room])
            cut = skip + len(part) < len(found)
            results.append({
                "Id": query["Id"],
                "Label": query["MetricStat"]["Metric"]["MetricName"],
                "Timestamps": [datetime.datetime.fromtimestamp(second, datetime.UTC) for second, _ in part],
                "Values": [value for _, value in part],
                "StatusCode": "PartialData" if cut else status,
            })
            if cut or (room == 0 and number + 1 < len(queries)):
                following = f"{number}/{skip + len(part)}" if cut else f"{number + 1}/0"
                break
        return {"MetricDataResults": results} | ({"NextToken": following} if following else {})

    def of(self, account, region, stat, start, end):
        metric = stat["Metric"]
        if stat["Period"] % 60 or metric["Namespace"] != "AWS/EC2":
            raise standin.Refused("ValidationError", "an odd period or an unknown namespace")
        [id] = [dimension["Value"] for dimension in metric["Dimensions"] if dimension["Name"] == "InstanceId"]
        name, machine = metric["MetricName"], (account, region, id)
        found = self.series.get(machine, {}).get(name, [])
        status = self.statuses.get(machine, {}).get(name, "Complete")
        if status == "Forbidden":
            return [], status
        return [point for point in found if start <= point[0] < end], status


def instant(time):
    return time.timestamp() if isinstance(time, datetime.datetime) else float(time)
