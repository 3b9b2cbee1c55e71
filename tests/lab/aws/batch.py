"""AWS Batch and ECS, answered from one table: jobs, the tasks that they run in, and the container instances below, by the ids of moto's own
instances. moto has neither the paging nor the fields that tell where a job runs.

What is put into the table has the shape that AWS answers with, and is checked against AWS's model when it is asked for (standin.py). Limits that
the model does not hold are kept here: 100 ids a call, 1,000 jobs a page, nothing but RUNNING where no status is given, children of an
array by `arrayJobId` alone. 50,000 machines with a job each are seeded in 2 s, and a page of 1,000 of their jobs takes 0.1 s.
"""

import collections
import datetime
import time

import wire
from leftovers import page
from standin import Refused

DESCRIBED_AT_ONCE = 100
# So long Batch takes to stop a container, in seconds, and the longest reason that it takes.
STOPS_IN_S = 1
REASON = 1024
JOBS_PAGE = 1000
FORMS = {"batch": "rest-json"}
PAGE = 100
SUMMARY = ["jobArn", "jobId", "jobName", "createdAt", "status", "statusReason", "startedAt", "stoppedAt", "jobDefinition"]


class Table:
    """Everything of one account and region."""

    def __init__(self, account, region):
        self.account, self.region = account, region
        self.environments, self.queues, self.jobs = {}, {}, {}
        # (what of, which, status) -> ids, each once.
        self.listed = collections.defaultdict(dict)
        # name -> ARNs; and what these are.
        self.clusters, self.container_instances, self.tasks = {}, {}, {}
        # id of a job whose container is being stopped -> until when, and why.
        self.stopping = {}

    def arn(self, service, what):
        return f"arn:aws:{service}:{self.region}:{self.account}:{what}"

    def put_job(self, job):
        before = self.jobs.get(job["jobId"])
        if before:
            self.listed[(*whose(before), before["status"])].pop(job["jobId"], None)
        self.jobs[job["jobId"]] = job
        self.listed[(*whose(job), job["status"])][job["jobId"]] = None

    def settle(self):
        """What was terminated has failed once its container is off."""
        for job, (until, why) in list(self.stopping.items()):
            if time.time() >= until:
                del self.stopping[job]
                self.put_job(self.jobs[job] | {"status": "FAILED", "statusReason": why, "stoppedAt": int(until * 1000)})

    def put_cluster(self, name):
        self.clusters.setdefault(name, {})

    def put_container_instance(self, cluster, instance):
        self.put_cluster(cluster)
        instance = dated(instance)
        self.container_instances[cluster, instance["containerInstanceArn"]] = instance
        self.clusters[cluster][instance["containerInstanceArn"]] = None

    def put_task(self, cluster, task):
        self.put_cluster(cluster)
        self.tasks[cluster, task["taskArn"]] = dated(task)

    def put_fleet(self, fleet):
        """An environment, its queue, and for each instance a container instance, a task and a job that runs."""
        name, cluster = fleet["environment"], f"{fleet['environment']}_Batch"
        environment, queue = self.arn("batch", f"compute-environment/{name}"), self.arn("batch", f"job-queue/{name}")
        self.environments[name] = {
            "computeEnvironmentName": name,
            "computeEnvironmentArn": environment,
            "ecsClusterArn": self.arn("ecs", f"cluster/{cluster}"),
            "type": "MANAGED",
            "state": "ENABLED",
            "status": "VALID",
            "statusReason": "ComputeEnvironment Healthy",
            "containerOrchestrationType": "ECS",
            "computeResources": {"type": "EC2", "minvCpus": 0, "maxvCpus": 256, "desiredvCpus": 2, "subnets": []},
        }
        self.put_cluster(cluster)
        self.queues[name] = {
            "jobQueueName": name,
            "jobQueueArn": queue,
            "state": "ENABLED",
            "status": "VALID",
            "priority": 1,
            "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": environment}],
        }
        for number, instance in enumerate(fleet["instances"]):
            key = f"{number:032x}"
            task = self.arn("ecs", f"task/{cluster}/{key}")
            machine = self.arn("ecs", f"container-instance/{cluster}/{key}")
            self.put_container_instance(
                cluster, {"containerInstanceArn": machine, "ec2InstanceId": instance, "status": "ACTIVE", "agentConnected": True}
            )
            container = {"name": "default", "runtimeId": f"{number:064x}", "lastStatus": "RUNNING"}
            self.put_task(
                cluster,
                {
                    "taskArn": task,
                    "containerInstanceArn": machine,
                    "lastStatus": "RUNNING",
                    "launchType": "EC2",
                    "containers": [container],
                },
            )
            self.put_job(
                {
                    "jobId": f"{name}-{number}",
                    "jobName": f"{name}-{number}",
                    "jobQueue": queue,
                    "jobDefinition": self.arn("batch", "job-definition/align:1"),
                    "status": "RUNNING",
                    "createdAt": 1795000000000 + number,
                    "startedAt": 1795000060000 + number,
                    "container": {"taskArn": task, "containerInstanceArn": machine, "logStreamName": f"align/default/{key}"},
                }
            )


def whose(job):
    """By what a job is listed."""
    for mark, what in ((":", "arrayJobId"), ("#", "multiNodeJobId")):
        if mark in job["jobId"]:
            return what, job["jobId"].split(mark)[0]
    return "jobQueue", job["jobQueue"].split("/")[-1]


def dated(told):
    """ECS's moments are dates in botocore's hands; here they come as seconds since 1970."""
    date = lambda seconds: datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)  # noqa: E731
    return {name: date(value) if name.endswith("At") else value for name, value in told.items()}


TABLES = {}


def table(account, region):
    return TABLES.setdefault((account, region), Table(account, region))


def seed(account, region, spec):
    """Puts things into the table; all parts are optional, and whatever has a known id takes the place of what had it.

    `environments`, `queues` and `jobs` are as AWS describes them; `container_instances` and `tasks` likewise, each with its `cluster` beside
    it as {"cluster", "is"}; `clusters` are names. `fleets` are {"environment", "instances"}: a job that runs on each of these instances. `forget_tasks`
    are ARNs of tasks that ECS knows no more."""
    into = table(account, region)
    for fleet in spec.get("fleets", []):
        into.put_fleet(fleet)
    for environment in spec.get("environments", []):
        into.environments[environment["computeEnvironmentName"]] = environment
        if environment.get("ecsClusterArn"):
            into.put_cluster(environment["ecsClusterArn"].split("/")[-1])
    for queue in spec.get("queues", []):
        into.queues[queue["jobQueueName"]] = queue
    for job in spec.get("jobs", []):
        into.put_job(job)
    for cluster in spec.get("clusters", []):
        into.put_cluster(cluster)
    for one in spec.get("container_instances", []):
        into.put_container_instance(one["cluster"], one["is"])
    for one in spec.get("tasks", []):
        into.put_task(one["cluster"], one["is"])
    for arn in spec.get("forget_tasks", []):
        into.tasks = {key: task for key, task in into.tasks.items() if key[1] != arn}
    return {"jobs": len(into.jobs)}


def described(known, wanted):
    """All, or those that are named by name or ARN."""
    if not wanted:
        return list(known.values())
    return [known[name.split("/")[-1]] for name in wanted if name.split("/")[-1] in known]


def answer(name, items, request, largest, **more):
    """One page of a list."""
    wanted = request.get("maxResults") or largest
    part, token = page(items, min(wanted, largest), request.get("nextToken"))
    return {name: part, **more, **({"nextToken": token} if token else {})}


def describe_compute_environments(account, region, request):
    found = described(table(account, region).environments, request.get("computeEnvironments"))
    return answer("computeEnvironments", found, request, PAGE)


def describe_job_queues(account, region, request):
    return answer("jobQueues", described(table(account, region).queues, request.get("jobQueues")), request, PAGE)


def list_jobs(account, region, request):
    asked = [what for what in ("jobQueue", "arrayJobId", "multiNodeJobId") if request.get(what)]
    if len(asked) != 1 or request.get("filters"):
        raise Refused("ClientException", "one of jobQueue, arrayJobId and multiNodeJobId, and no filters here")
    into, what = table(account, region), asked[0]
    into.settle()
    which = request[what].split("/")[-1] if what == "jobQueue" else request[what]
    if what == "jobQueue" and which not in into.queues:
        raise Refused("ClientException", f"{which} does not exist")
    ids = list(into.listed[what, which, request.get("jobStatus", "RUNNING")])
    told = answer("jobSummaryList", ids, request, JOBS_PAGE)
    return {**told, "jobSummaryList": [summary(into.jobs[one]) for one in told["jobSummaryList"]]}


def summary(job):
    told = {name: job[name] for name in SUMMARY if name in job}
    container = {name: job.get("container", {})[name] for name in ("exitCode", "reason") if name in job.get("container", {})}
    array = {name: value for name, value in job.get("arrayProperties", {}).items() if name in ("size", "index")}
    nodes = {"numNodes": job["nodeProperties"]["numNodes"]} if "nodeProperties" in job else {}
    nodes |= job.get("nodeDetails", {})
    return told | {
        name: value
        for name, value in (("container", container), ("arrayProperties", array), ("nodeProperties", nodes))
        if value
    }


def describe_jobs(account, region, request):
    if len(request["jobs"]) > DESCRIBED_AT_ONCE:
        raise Refused("ClientException", "jobs must not be more than 100")
    table(account, region).settle()
    jobs = table(account, region).jobs
    return {"jobs": [jobs[one] for one in request["jobs"] if one in jobs]}


def terminate_job(account, region, request):
    into, job, why = table(account, region), request["jobId"], request["reason"]
    into.settle()
    if job not in into.jobs:
        raise Refused("ClientException", f"Job {job} not found")
    if not 1 <= len(why) <= REASON:
        raise Refused("ClientException", "reason must be of 1 to 1024 characters")
    if into.jobs[job]["status"] not in ("SUCCEEDED", "FAILED"):
        into.put_job(into.jobs[job] | {"isTerminated": True})
        into.stopping.setdefault(job, (time.time() + STOPS_IN_S, why))
    return {}


def list_tags_for_resource(account, region, request):
    kind, _, name = request["resourceArn"].partition(":job/")
    if not name or name not in table(account, region).jobs:
        raise Refused("ClientException", f"{kind} is no job here")
    return {"tags": table(account, region).jobs[name].get("tags", {})}


def cluster_of(account, region, request):
    name = (request.get("cluster") or "default").split("/")[-1]
    into = table(account, region)
    if name not in into.clusters:
        raise Refused("ClusterNotFoundException", "Cluster not found.")
    if request.get("maxResults", 1) > PAGE:
        raise Refused("InvalidParameterException", "maxResults must be between 1 and 100")
    return into, name


def list_clusters(account, region, request):
    into = table(account, region)
    return answer("clusterArns", [into.arn("ecs", f"cluster/{name}") for name in into.clusters], request, PAGE)


def list_container_instances(account, region, request):
    into, name = cluster_of(account, region, request)
    return answer("containerInstanceArns", list(into.clusters[name]), request, PAGE)


def told_of(known, cluster, wanted):
    """(those that are known, failures for the others)."""
    if len(wanted) > DESCRIBED_AT_ONCE:
        raise Refused("InvalidParameterException", "no more than 100 may be described at once")
    missing = [{"arn": arn, "reason": "MISSING"} for arn in wanted if (cluster, arn) not in known]
    return [known[cluster, arn] for arn in wanted if (cluster, arn) in known], missing


def describe_container_instances(account, region, request):
    into, name = cluster_of(account, region, request)
    found, missing = told_of(into.container_instances, name, request["containerInstances"])
    return {"containerInstances": found, "failures": missing}


def describe_tasks(account, region, request):
    into, name = cluster_of(account, region, request)
    found, missing = told_of(into.tasks, name, request["tasks"])
    return {"tasks": found, "failures": missing}


def register(standins):
    """Answers all calls of Batch and ECS that there are here."""
    standins.add("batch", "DescribeComputeEnvironments", describe_compute_environments)
    standins.add("batch", "DescribeJobQueues", describe_job_queues)
    standins.add("batch", "ListJobs", list_jobs)
    # The model calls the start of a job required; a job that has not started has none.
    standins.add("batch", "DescribeJobs", describe_jobs, left_out=["startedAt"])
    standins.add("batch", "TerminateJob", terminate_job)
    standins.add("batch", "ListTagsForResource", list_tags_for_resource)
    standins.add("ecs", "ListClusters", list_clusters)
    standins.add("ecs", "ListContainerInstances", list_container_instances)
    standins.add("ecs", "DescribeContainerInstances", describe_container_instances)
    standins.add("ecs", "DescribeTasks", describe_tasks)
    # AWS's models are read now, for they take longer than a client may want to wait for an answer.
    wire.rest_actions("batch")
    for service, action in list(standins.answering):
        wire.answer(wire.Call(service, action, FORMS.get(service, "json"), {}), {})
