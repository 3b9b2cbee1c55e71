"""moto's EC2, made to page, tag, price and date its instances as AWS does.

Importing this module mends moto for the whole process:
  - DescribeInstances pages by instance, at most 1,000 at a time (moto: by reservation, 100 at a time);
  - DescribeInstanceTypes and DescribeInstanceTypeOfferings page at all (moto: everything at once, 6 MB);
  - the tags of an instance are one look-up (moto: a walk over all tags of all resources);
  - every instance has the billing fields that AWS always returns (moto: none);
  - DescribeRegions tells only of regions that are enabled (moto: of all, in all partitions);
  - an address that AWS lends belongs to `amazon` (moto: to the account, as if it were elastic).
"""

import copy
import datetime

from moto.core.responses import ActionResult
from moto.ec2 import ec2_backends
from moto.ec2.exceptions import InvalidParameterCombination
from moto.ec2.models import core
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS
from moto.ec2.models.instances import Instance, InstanceState
from moto.ec2.responses.availability_zones_and_regions import AvailabilityZonesAndRegions
from moto.ec2.responses.instances import InstanceResponse

STATES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
ENABLED_REGIONS = {"us-east-1", "us-west-2", "eu-central-1"}
PAGING = {"page_size": 1000, "repeat_token": False}


def set_paging(page_size, repeat_token):
    PAGING.update(page_size=page_size or 1000, repeat_token=repeat_token)


def get_tags(self):
    tags = self.ec2_backend.tags.get(self.id) if self.id else None
    return [{"resource_id": self.id, "resource_type": "", "key": k, "value": v} for k, v in dict(tags or {}).items()]


def describe_instances(self):
    self.error_on_dryrun()
    ids, filters = self._get_param("InstanceIds", []), self._filters_from_querystring()
    if ids:
        if self._get_param("MaxResults"):
            raise InvalidParameterCombination("The parameter instancesSet cannot be used with the parameter maxResults")
        return ActionResult({"Reservations": self.ec2_backend.get_reservations_by_instance_ids(ids, filters=filters)})
    reservations = self.ec2_backend.describe_instances(filters=filters)
    size = min(int(self._get_param("MaxResults", 1000)), PAGING["page_size"])
    token = self._get_param("NextToken")
    start = int(token.removeprefix("after-")) if token else 0
    page, seen = [], 0
    for reservation in reservations:
        first, seen = seen, seen + len(reservation.instances)
        wanted = reservation.instances[max(0, start - first) : max(0, start + size - first)]
        if wanted:
            part = copy.copy(reservation)
            part.instances = wanted
            page.append(part)
    following = f"after-{start + size}" if start + size < seen else None
    if PAGING["repeat_token"]:
        following = "after-0"
    return ActionResult({"Reservations": page, "NextToken": following})


def describe_regions(self):
    self.error_on_dryrun()
    regions = self.ec2_backend.describe_regions(self._get_param("RegionNames", []))
    if self._get_param("AllRegions") in (True, "true"):
        return ActionResult({"Regions": regions})
    return ActionResult({"Regions": [region for region in regions if region.name in ENABLED_REGIONS]})


def paged(name, largest):
    """The list of one of moto's answers, in pages as AWS has them."""

    def answer(told, self):
        items, token = told(self).result[name], self._get_param("NextToken")
        start = int(token.removeprefix("after-")) if token else 0
        end = start + min(int(self._get_param("MaxResults") or largest), largest)
        return ActionResult({name: items[start:end], "NextToken": f"after-{end}" if end < len(items) else None})

    return answer


moto_types, moto_offerings = InstanceResponse.describe_instance_types, InstanceResponse.describe_instance_type_offerings
page_of_types, page_of_offerings = paged("InstanceTypes", 100), paged("InstanceTypeOfferings", 1000)
moto_association = NetworkInterface.association.fget


def association(self):
    known = moto_association(self)
    if known and not known.get("allocationId"):
        known["ipOwnerId"] = "amazon"
    return known


core.TaggedEC2Resource.get_tags = get_tags
AvailabilityZonesAndRegions.describe_regions = describe_regions
InstanceResponse.describe_instances = describe_instances
InstanceResponse.describe_instance_types = lambda self: page_of_types(moto_types, self)
InstanceResponse.describe_instance_type_offerings = lambda self: page_of_offerings(moto_offerings, self)
NetworkInterface.association = property(association)
Instance.usage_operation = "RunInstances"
Instance.platform_details = "Linux/UNIX"


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def seed(account, region, instances):
    """Starts instances; an entry may have `type`, `count`, `tags`, and whatever `apply` understands."""
    backend = ec2_backends[account][region]
    image = next(image for image in backend.describe_images() if image.platform != "windows")
    ids = []
    for wanted in instances:
        reservation = backend.run_instances(
            image.id,
            wanted.get("count", 1),
            None,
            [],
            instance_type=wanted.get("type", "t3.micro"),
            is_instance_type_default=False,
            region_name=region,
            tags={"instance": wanted.get("tags", {})},
        )
        for instance in reservation.instances:
            apply(instance, wanted)
            ids.append(instance.id)
    return ids


def change(account, region, instance_id, wanted):
    """Changes what EC2 says of one instance."""
    instance = ec2_backends[account][region].get_instance(instance_id)
    apply(instance, wanted)
    if "type" in wanted:
        instance.instance_type = wanted["type"]
    if "tags" in wanted:
        instance.ec2_backend.create_tags([instance_id], wanted["tags"])


def offer(region, zone, instance_type, is_offered):
    """Lets a zone offer a type, or offer it no more."""
    offered = INSTANCE_TYPE_OFFERINGS["availability-zone"][region]
    offered[:] = [one for one in offered if (one["Location"], one["InstanceType"]) != (zone, instance_type)]
    if is_offered:
        offered.append({"InstanceType": instance_type, "LocationType": "availability-zone", "Location": zone})


def apply(instance, wanted):
    for device in instance.block_device_mapping.values():
        attached = wanted.get("attached_at") or wanted.get("launched_at")
        if attached:
            device.attach_time = time_of(attached)
    if "launched_at" in wanted:
        instance.launch_time = time_of(wanted["launched_at"])
    if "state" in wanted:
        instance._state = InstanceState(wanted["state"], STATES[wanted["state"]])
    if "hibernates" in wanted:
        instance.hibernation_options = {"Configured": wanted["hibernates"]}
    if "tenancy" in wanted:
        instance.placement.tenancy = wanted["tenancy"]
    for name in ("disable_api_stop", "disable_api_termination", "lifecycle", "usage_operation", "platform_details", "root_device_type"):
        if name in wanted:
            setattr(instance, name, wanted[name])
