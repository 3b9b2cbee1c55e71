"""Servers by the dozen: one process reads moto and AWS's models, and each server is a fork of it.

Reading them takes seconds of CPU time, a fork some milliseconds. Each line of standard input is an order with a number, each line of
standard output its answer with the same one, by which an answer is told from that to an order that nobody waits for any more:

    1 start FILE   a server that writes its log to FILE -> its process id and its port
    2 end PID      the end of that server               -> `ended`

All of them end when standard input does, so when whoever gives the orders has ended, however that came.
"""

import ctypes
import gc
import os
import signal
import socket
import sys

from moto.core import DEFAULT_ACCOUNT_ID
from moto.moto_api._internal import mock_random
from werkzeug.test import EnvironBuilder, run_wsgi_app

PR_SET_PDEATHSIG = 1
REGIONS = ("eu-central-1", "us-east-1", "us-west-2")
# What the first call of a kind takes long for: a service's model, an account's default network in a region.
FIRST = {
    "ec2": ("DescribeInstances", "DescribeInstanceTypes", "DescribeVolumes", "DescribeAddresses", "DescribeSnapshots", "DescribeImages"),
    "autoscaling": ("DescribeAutoScalingGroups",),
    "sts": ("GetCallerIdentity",),
}


def prepare(lab):
    """Asks once what every scenario asks first, and leaves no trace of it but what moto keeps."""
    for region in REGIONS:
        for service, actions in FIRST.items():
            for action in actions:
                signed = f"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/{region}/{service}/aws4_request, Signature=0"
                headers = {"authorization": signed, "host": f"{service}.{region}.amazonaws.com"}
                asked = EnvironBuilder(method="POST", headers=headers, data={"Action": action, "Version": "2016-11-15"})
                _, status, _ = run_wsgi_app(lab, asked.get_environ(), buffered=True)
                if not status.startswith("200"):
                    raise RuntimeError(f"{action} in {region}: {status}")
    lab.calls.clear()


def start(log, serve):
    """A server in a process of its own: its id and its port, on which it can be asked at once."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    parent, port = os.getpid(), listening.getsockname()[1]
    pid = os.fork()
    if pid:
        listening.close()
        return f"{pid} {port}"
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for ours, theirs in ((os.open(os.devnull, os.O_RDONLY), 0), (written, 1), (written, 2)):
            os.dup2(ours, theirs)
        # Ids that one server makes up are not those of the others; what was made beforehand, such as default networks, has the same in all.
        mock_random.seed()
        serve(listening)
    finally:
        os._exit(1)


def end(pid):
    """Until it is waited for here, its id cannot be another process's."""
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    return "ended"


def obey(lab, serve):
    """Carries out orders until there are no more."""
    prepare(lab)
    # What is there by now is not gone through again, by this process or any other.
    gc.collect()
    gc.freeze()
    # Nothing is read ahead, so that nothing of it is in a fork.
    for order in iter(sys.stdin.readline, ""):
        number, what, argument = order.rstrip("\n").split(" ", 2)
        print(number, start(argument, serve) if what == "start" else end(int(argument)), flush=True)
