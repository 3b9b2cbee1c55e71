"""What EC2 tells of Spot prices: the changes within a time, and the last one before it of each pool (moto: one price for everything, of 2006).

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
"""

import datetime

from moto.core.responses import ActionResult
from moto.ec2.exceptions import InvalidParameterValueError
from moto.ec2.responses.spot_instances import SpotInstances

# (account, region) -> changes: zone, type, product, at, price.
CHANGES = {}
FILTERS = {"instance-type": "type", "product-description": "product", "availability-zone": "zone"}


def seed(account, region, changes):
    CHANGES.setdefault((account, region), []).extend(changes)
    return {}


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def describe_spot_price_history(self):
    self.error_on_dryrun()
    changes = CHANGES.get((self.current_account, self.region), [])
    for name, values in self._filters_from_querystring().items():
        if name not in FILTERS:
            raise InvalidParameterValueError(f"the laboratory knows no filter {name}")
        changes = [change for change in changes if change[FILTERS[name]] in values]
    start = self._get_param("StartTime")
    if start:
        start = time_of(start) if isinstance(start, str) else start
        start = start if start.tzinfo else start.replace(tzinfo=datetime.timezone.utc)
        told, before = [], {}
        for change in sorted(changes, key=lambda change: time_of(change["at"])):
            if time_of(change["at"]) >= start:
                told.append(change)
            else:
                before[change["zone"], change["type"], change["product"]] = change
        changes = [*told, *before.values()]
    first, size = int(self._get_param("NextToken") or 0), int(self._get_param("MaxResults") or 1000)
    page = changes[first : first + size]
    history = [
        {
            "AvailabilityZone": change["zone"],
            "InstanceType": change["type"],
            "ProductDescription": change["product"],
            "SpotPrice": change["price"],
            "Timestamp": change["at"],
        }
        for change in page
    ]
    return ActionResult({"SpotPriceHistory": history, "NextToken": str(first + size) if first + size < len(changes) else ""})


SpotInstances.describe_spot_price_history = describe_spot_price_history
