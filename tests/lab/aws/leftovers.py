"""moto's volumes, addresses, snapshots and Auto Scaling groups, made to page and to belong to somebody as AWS's do.

Importing this module mends moto for the whole process:
  - DescribeVolumes, DescribeSnapshots and DescribeImages page, at most 1,000 at a time (moto: everything in one answer);
  - DescribeSnapshots with OwnerIds lists the snapshots of those owners (moto: everybody's);
  - DescribeAutoScalingGroups pages as small as the scenario asks for (moto: 50 or what the client asks for);
  - volumes and addresses may be managed by a service, attached and tied to what the scenario says;
  - DescribeInstanceRefreshes tells what the scenario says, and DescribeTerminationPolicyTypes answers (moto: no such calls);
  - addresses may have a name that leads back, a pool of the customer's own, and an offer to another account, which DescribeAddressTransfers lists (moto: no such call).
"""

from moto.autoscaling import autoscaling_backends
from moto.autoscaling.models import InstanceState as Member
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult
from moto.ec2 import ec2_backends
from moto.ec2.models.elastic_block_store import Snapshot, Volume
from moto.ec2.models.elastic_ip_addresses import ElasticAddress
from moto.ec2.responses.amis import AmisResponse
from moto.ec2.responses.elastic_block_store import ElasticBlockStore
from moto.ec2.responses.elastic_ip_addresses import ElasticIPAddresses

from ec2 import PAGING, time_of

# Of the credentials that the scenarios begin with (`lab::aws::ACCOUNT`).
ACCOUNT = "123456789012"


def page(found, wanted, token):
    """One page of a list, and the token of the next one."""
    size = min(wanted, PAGING["page_size"])
    start = int(token.removeprefix("after-")) if token else 0
    following = f"after-{start + size}" if start + size < len(found) else None
    return found[start : start + size], "after-0" if PAGING["repeat_token"] else following


def describe_volumes(self):
    found = self.ec2_backend.describe_volumes(self._get_param("VolumeIds", []), self._filters_from_querystring())
    part, token = page(found, int(self._get_param("MaxResults", 1000)), self._get_param("NextToken"))
    return ActionResult({"Volumes": part, "NextToken": token})


def describe_snapshots(self):
    found = self.ec2_backend.describe_snapshots(self._get_param("SnapshotIds", []), self._filters_from_querystring())
    owners = [self.current_account if owner == "self" else owner for owner in self._get_param("OwnerIds", [])]
    found = [snapshot for snapshot in found if not owners or snapshot.owner_id in owners]
    part, token = page(found, int(self._get_param("MaxResults", 1000)), self._get_param("NextToken"))
    return ActionResult({"Snapshots": part, "NextToken": token})


def describe_images(self):
    found = self.ec2_backend.describe_images(
        ami_ids=self._get_param("ImageIds", []),
        filters=self._filters_from_querystring(),
        owners=self._get_param("Owners", []),
    )
    part, token = page(found, int(self._get_param("MaxResults", 1000)), self._get_param("NextToken"))
    return ActionResult({"Images": part, "NextToken": token})


def describe_auto_scaling_groups(self):
    names, filters = self._get_param("AutoScalingGroupNames", []), self._get_param("Filters", [])
    found = self.autoscaling_backend.describe_auto_scaling_groups(names, filters=filters)
    wanted = self._get_int_param("MaxRecords", 50)
    if wanted > 100:
        raise ValueError("AWS refuses more than 100 groups a page")
    part, token = page(found, wanted, self._get_param("NextToken"))
    return ActionResult({"AutoScalingGroups": part, "NextToken": token})


moto_attachments = Volume.attachments.fget


def attachments(self):
    found = moto_attachments(self)
    for attachment in found:
        device = attachment.instance.block_device_mapping.get(attachment.device)
        attachment.delete_on_termination = getattr(device, "delete_on_termination", None)
    return found


ElasticBlockStore.describe_volumes = describe_volumes
ElasticBlockStore.describe_snapshots = describe_snapshots
AmisResponse.describe_images = describe_images
AutoScalingResponse.describe_auto_scaling_groups = describe_auto_scaling_groups
Volume.attachments = property(attachments)
Volume.state = property(lambda self: getattr(self, "lab_state", None) or self.status)
Snapshot.state = property(
    lambda self: getattr(self, "lab_state", None) or getattr(self.volume, "lab_copies_are", None) or self.status
)
ElasticAddress.public_ipv4_pool = "amazon"
ElasticAddress.service_managed = None
ElasticAddress.ptr_record = None
ElasticAddress.offered_to = None


def describe_address_transfers(self):
    self.error_on_dryrun()
    offered = [address for address in self.ec2_backend.addresses if address.offered_to]
    transfers = [
        {
            "PublicIp": address.public_ip,
            "AllocationId": address.allocation_id,
            "TransferAccountId": address.offered_to,
            "AddressTransferStatus": "pending",
        }
        for address in offered
    ]
    return ActionResult({"AddressTransfers": transfers})


ElasticIPAddresses.describe_address_transfers = describe_address_transfers


def describe_instance_refreshes(self):
    group = self.autoscaling_backend.describe_auto_scaling_groups([self._get_param("AutoScalingGroupName")])[0]
    refreshes = [
        {"InstanceRefreshId": f"r-{number}", "AutoScalingGroupName": group.name, "Status": status}
        for number, status in enumerate(getattr(group, "lab_refreshes", []))
    ]
    return ActionResult({"InstanceRefreshes": refreshes, "NextToken": None})


def describe_termination_policy_types(self):
    return ActionResult({"TerminationPolicyTypes": ["Default", "OldestInstance"]})


AutoScalingResponse.describe_instance_refreshes = describe_instance_refreshes
AutoScalingResponse.describe_termination_policy_types = describe_termination_policy_types


def refreshes(region, group, states):
    """Has the replacements of a group's instances be in these states, the newest first."""
    autoscaling_backends[ACCOUNT][region].autoscaling_groups[group].lab_refreshes = states
    return []


def volumes(region, wanted):
    """Makes volumes; an entry may have `type`, `size_gib`, `iops`, `throughput`, `created_at`, `state`, `tags`, `attached_to`
    (an instance's id), `attached_at`, `delete_on_termination`, `snapshot` and `copies_are` (the state of each snapshot of it). One with an `id` is there; its `copies_are` changes."""
    backend, ids = ec2_backends[ACCOUNT][region], []
    for entry in wanted:
        if "id" in entry:
            backend.volumes[entry["id"]].lab_copies_are = entry.get("copies_are")
            ids.append(entry["id"])
            continue
        volume = backend.create_volume(
            size=entry.get("size_gib", 8),
            zone_name=f"{region}a",
            volume_type=entry.get("type", "gp3"),
            iops=entry.get("iops"),
            throughput=entry.get("throughput"),
        )
        volume.add_tags(entry.get("tags", {}))
        volume.snapshot_id = entry.get("snapshot")
        volume.lab_state = entry.get("state")
        volume.lab_copies_are = entry.get("copies_are")
        if "created_at" in entry:
            volume.create_time = time_of(entry["created_at"])
        if "attached_to" in entry:
            attachment = backend.attach_volume(
                volume.id, entry["attached_to"], "/dev/sdf", entry.get("delete_on_termination", False)
            )
            if "attached_at" in entry:
                attachment.attach_time = time_of(entry["attached_at"])
        ids.append(volume.id)
    return ids


def addresses(region, wanted):
    """Allocates addresses; an entry may have `instance` (an id), `service_managed`, `reverse_name`, `offered_to` (an account), `pool` and `tags`."""
    backend, ids = ec2_backends[ACCOUNT][region], []
    for entry in wanted:
        address = backend.allocate_address("vpc", tags=entry.get("tags", {}))
        address.service_managed = entry.get("service_managed")
        address.ptr_record = entry.get("reverse_name")
        address.offered_to = entry.get("offered_to")
        address.public_ipv4_pool = entry.get("pool", "amazon")
        if "instance" in entry:
            backend.associate_address(
                instance=backend.get_instance(entry["instance"]), allocation_id=address.allocation_id
            )
        ids.append(address.allocation_id)
    return ids


def snapshots(region, wanted):
    """Makes snapshots; an entry has `volume` (an id), and may have `description`, `started_at`, `state`, `tier`, `tags`,
    `owner` (an account's number, else the one account) and `image` (the name of one that is made of it)."""
    backend, ids = ec2_backends[ACCOUNT][region], []
    for entry in wanted:
        snapshot = backend.create_snapshot(entry["volume"], entry.get("description"), owner_id=entry.get("owner"))
        snapshot.add_tags(entry.get("tags", {}))
        snapshot.lab_state = entry.get("state")
        snapshot.storage_tier = entry.get("tier", "standard")
        if "started_at" in entry:
            snapshot.start_time = time_of(entry["started_at"])
        if "image" in entry:
            image = backend.register_image(entry["image"])
            backend.snapshots.pop(image.ebs_snapshot.id)
            image.ebs_snapshot, image.root_device_type = snapshot, "ebs"
        ids.append(snapshot.id)
    return ids


def groups(region, wanted):
    """Makes groups of instances that already run; moto's own way starts each member. An entry has `name`, `min`, `max`,
    `desired` and `members` (`id`, `lifecycle_state`, `health`, `protected`), and may have `tags`. Each has a launch template
    of its own name, and puts its name into the tag that Auto Scaling puts it into where `tags_members` says so."""
    backend, ec2 = autoscaling_backends[ACCOUNT][region], ec2_backends[ACCOUNT][region]
    for entry in wanted:
        image = next(image for image in ec2.describe_images() if image.platform != "windows")
        ec2.create_launch_template(entry["name"], "", {"ImageId": image.id, "InstanceType": "m5.large"}, {})
        group = backend.create_auto_scaling_group(
            name=entry["name"],
            availability_zones=[f"{region}a"],
            desired_capacity=0,
            max_size=entry["max"],
            min_size=0,
            launch_config_name=None,
            launch_template={"LaunchTemplateName": entry["name"], "Version": "1"},
            vpc_zone_identifier=None,
            default_cooldown=None,
            health_check_period=None,
            health_check_type=None,
            load_balancers=[],
            target_group_arns=[],
            placement_group=None,
            termination_policies=[],
            tags=[{"Key": key, "Value": value} for key, value in entry.get("tags", {}).items()],
        )
        group.min_size, group.desired_capacity = entry["min"], entry["desired"]
        for member in entry["members"]:
            instance = ec2.get_instance(member["id"])
            instance.autoscaling_group = group
            if entry.get("tags_members"):
                instance.add_tags({"aws:autoscaling:groupName": entry["name"]})
            group.instance_states.append(
                Member(instance, member["lifecycle_state"], member["health"], member["protected"], group)
            )
    return [entry["name"] for entry in wanted]
