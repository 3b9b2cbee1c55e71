"""Fills moto with an estate of tens of thousands of machines in seconds; its own ways are linear in what there is, for each one.

While an estate is made, three look-ups that moto does for each machine by walking over everything are answered at once: the image
that all of them start from, a machine by its id, a volume by its id. What is made is what moto makes.
"""

import contextlib

from moto.ec2 import ec2_backends
from moto.ec2.models import EC2Backend

import ec2


@contextlib.contextmanager
def indexed(backend):
    images = [next(image for image in backend.describe_images() if image.platform != "windows")]
    last = {}

    def describe_images(self, *_arguments, **_named):
        return images

    def get_instance(self, instance_id):
        if last.get("id") != instance_id:
            reservation = next(reversed(self.reservations.values()))
            last.update(id=instance_id, instance=next(i for i in reversed(reservation.instances) if i.id == instance_id))
        return last["instance"]

    def describe_volumes(self, volume_ids=None, filters=None):
        return [self.volumes[volume_id] for volume_id in volume_ids]

    mended = {"describe_images": describe_images, "get_instance": get_instance, "describe_volumes": describe_volumes}
    own = {name: EC2Backend.__dict__.get(name) for name in mended}
    for name, method in mended.items():
        setattr(EC2Backend, name, method)
    try:
        yield
    finally:
        for name, method in own.items():
            if method is None:
                delattr(EC2Backend, name)
            else:
                setattr(EC2Backend, name, method)


def seed(account, region, wanted):
    """Starts instances as `ec2.seed` does. In a process that serves others meanwhile these would see the mended look-ups."""
    backend = ec2_backends[account][region]
    with indexed(backend):
        return ec2.seed(account, region, wanted)
