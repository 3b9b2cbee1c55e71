"""A Terraform provider without a cloud: the true schema, and made-up values for all that only a cloud knows.

Usage: started by Terraform. SCHEMA is the file that schema.py wrote.

Terraform itself checks each configuration against the schema (names, types, what is required), plans, applies and keeps the state; nothing is asked of anybody. So a wrong argument is found
here, and what a cloud or its provider would refuse is not: a wrong enumeration, two arguments that exclude each other, a quota, a missing permission.
"""

import itertools
import json
import os

import msgpack
import tf.provider
import tf.runner
from tf.gen import tfplugin_pb2 as pb
from tf.gen import tfplugin_pb2_grpc as rpc

SCHEMA_FILE = os.environ["SCHEMA"]
# The types that are used at all, if somebody says so: Terraform reads the whole schema at each of its starts, 1,581 resources of AWS's.
ONLY = set(os.environ.get("SCHEMA_ONLY", "").split())
ACCOUNT = "123456789012"
REGION = "eu-central-1"
# What is not known before it is applied, as Terraform writes it.
UNKNOWN = msgpack.ExtType(0, b"\x00")
NESTING = {"SINGLE": 1, "LIST": 2, "SET": 3, "MAP": 4}

# Values that others are made of.
FIXED = {
    "account_id": ACCOUNT,
    "partition": "aws",
    "dns_suffix": "amazonaws.com",
    "url_suffix": "amazonaws.com",
    "region": REGION,
    "availability_zone": REGION + "a",
    "private_ip": "10.0.0.10",
    "address": "db.example.internal",
    "port": 5432,
}
# How the ARN of a resource ends, by its type: policies are made of these, and are judged.
ARNS = {
    "aws_iam_role": "iam::{account}:role/{name}",
    "aws_iam_policy": "iam::{account}:policy/{name}",
    "aws_iam_instance_profile": "iam::{account}:instance-profile/{name}",
    "aws_kms_key": "kms:{region}:{account}:key/00000000-0000-4000-8000-00000000000{n}",
    "aws_secretsmanager_secret": "secretsmanager:{region}:{account}:secret:{name}-AbCdEf",
    "aws_cloudwatch_log_group": "logs:{region}:{account}:log-group:{name}",
    "aws_sns_topic": "sns:{region}:{account}:{name}",
    "aws_ecs_cluster": "ecs:{region}:{account}:cluster/{name}",
    "aws_s3_bucket": "s3:::{bucket}",
    "aws_ssm_parameter": "ssm:{region}:{account}:parameter{name}",
    "aws_ssm_document": "ssm:{region}:{account}:document/{name}",
    "aws_lb": "elasticloadbalancing:{region}:{account}:loadbalancer/app/{name}/0123456789abcdef",
    "aws_lb_target_group": "elasticloadbalancing:{region}:{account}:targetgroup/{name}/0123456789abcdef",
    "aws_db_instance": "rds:{region}:{account}:db:{identifier}",
}
NUMBERS = itertools.count(1)


def load():
    """The schema and Terraform's message of it, which takes a second to make and is kept beside it."""
    kept = SCHEMA_FILE + ".message"
    with open(SCHEMA_FILE, encoding="utf-8") as file:
        schema = json.load(file)
    if ONLY:
        for kind in ("resources", "data"):
            schema[kind] = {name: block for name, block in schema[kind].items() if name in ONLY}
        return schema, message(schema)
    if not os.path.exists(kept) or os.path.getmtime(kept) < os.path.getmtime(SCHEMA_FILE):
        part = f"{kept}.{os.getpid()}"
        with open(part, "wb") as file:
            file.write(message(schema).SerializeToString())
        os.replace(part, kept)
    with open(kept, "rb") as file:
        return schema, pb.GetProviderSchema.Response.FromString(file.read())


def message(schema):
    answer = pb.GetProviderSchema.Response(provider=of_block(schema["provider"]), server_capabilities=capabilities())
    for name, block in schema["resources"].items():
        answer.resource_schemas[name].CopyFrom(of_block(block))
    for name, block in schema["data"].items():
        answer.data_source_schemas[name].CopyFrom(of_block(block))
    return answer


def capabilities():
    return pb.ServerCapabilities(get_provider_schema_optional=True)


def of_block(block):
    return pb.Schema(version=0, block=inner_block(block))


def inner_block(block):
    made = pb.Schema.Block(version=0)
    for name, value in sorted(block["attributes"].items()):
        kind = json.dumps(value["type"]).encode()
        flags = {flag: value[flag] for flag in ("required", "optional", "computed")}
        made.attributes.append(pb.Schema.Attribute(name=name, type=kind, **flags))
    for name, value in sorted(block["blocks"].items()):
        nested = pb.Schema.NestedBlock(type_name=name, block=inner_block(value["block"]), nesting=NESTING[value["nesting"]])
        if value["nesting"] != "SINGLE":
            nested.min_items, nested.max_items = value["min"], value["max"]
        made.block_types.append(nested)
    return made


def decode(value):
    if value.msgpack:
        return msgpack.unpackb(value.msgpack, raw=False, strict_map_key=False)
    return json.loads(value.json or b"null")


def encode(value):
    return pb.DynamicValue(msgpack=msgpack.packb(value, use_bin_type=True))


def fill(block, values, make):
    """Puts what `make` says where only a cloud could know."""
    if values is None or isinstance(values, msgpack.ExtType):
        return values
    for name, value in block["attributes"].items():
        given = values.get(name)
        if value["computed"] and (given is None or isinstance(given, msgpack.ExtType)):
            values[name] = make(name, value["type"], values)
    for name, value in block["blocks"].items():
        nested = values.get(name)
        if isinstance(nested, list):
            values[name] = [fill(value["block"], one, make) for one in nested]
        elif isinstance(nested, dict):
            values[name] = fill(value["block"], nested, make)
    return values


def unknown(_name, _kind, _values):
    return UNKNOWN


def made_up(of):
    number = next(NUMBERS)

    def text(name, values):
        if name in FIXED:
            return str(FIXED[name])
        if name == "arn" and of in ARNS:
            known = {key: value for key, value in values.items() if isinstance(value, str)}
            known.setdefault("name", f"{of}-{number}")
            return "arn:aws:" + ARNS[of].format(account=ACCOUNT, **{"region": REGION, "n": number % 10, **known})
        if "arn" in name.split("_"):
            return f"arn:aws:made-up:{REGION}:{ACCOUNT}:{of}/{name}-{number}"
        return f"made-up-{of}-{name}-{number}"

    def make(name, kind, values):
        if kind == "string":
            return text(name, values)
        if kind == "number":
            return FIXED.get(name, 1)
        if kind == "bool":
            return False
        if kind[0] in ("list", "set"):
            return several(name, kind, values)
        if kind[0] == "map":
            return {}
        return {key: make(key, inner, {}) for key, inner in kind[1].items()}

    def several(name, kind, values):
        if name in ("names", "zone_ids"):
            return [REGION + zone for zone in "abc"]
        if kind[1] == "string":
            return [text(name, values)]
        return [make(name, kind[1], {})] if isinstance(kind[1], list) and kind[1][0] == "object" else []

    return make


class Provider(rpc.ProviderServicer):
    def __init__(self, _):
        self.schema, self.message = load()

    def GetMetadata(self, request, context):
        answer = pb.GetMetadata.Response(server_capabilities=capabilities())
        answer.resources.extend(pb.GetMetadata.ResourceMetadata(type_name=name) for name in self.schema["resources"])
        answer.data_sources.extend(pb.GetMetadata.DataSourceMetadata(type_name=name) for name in self.schema["data"])
        return answer

    def GetProviderSchema(self, request, context):
        return self.message

    def ValidateProviderConfig(self, request, context):
        return pb.ValidateProviderConfig.Response()

    def ValidateResourceConfig(self, request, context):
        return pb.ValidateResourceConfig.Response()

    def ValidateDataResourceConfig(self, request, context):
        return pb.ValidateDataResourceConfig.Response()

    def ConfigureProvider(self, request, context):
        return pb.ConfigureProvider.Response()

    def UpgradeResourceState(self, request, context):
        return pb.UpgradeResourceState.Response(upgraded_state=encode(json.loads(request.raw_state.json)))

    def ReadResource(self, request, context):
        return pb.ReadResource.Response(new_state=request.current_state)

    def PlanResourceChange(self, request, context):
        values = decode(request.proposed_new_state)
        if values is None:
            return pb.PlanResourceChange.Response(planned_state=request.proposed_new_state)
        planned = fill(self.schema["resources"][request.type_name], values, unknown)
        return pb.PlanResourceChange.Response(planned_state=encode(planned))

    def ApplyResourceChange(self, request, context):
        values = decode(request.planned_state)
        if values is None:
            return pb.ApplyResourceChange.Response(new_state=request.planned_state)
        made = fill(self.schema["resources"][request.type_name], values, made_up(request.type_name))
        return pb.ApplyResourceChange.Response(new_state=encode(made))

    def ReadDataSource(self, request, context):
        values = fill(self.schema["data"][request.type_name], decode(request.config), made_up(request.type_name))
        return pb.ReadDataSource.Response(state=encode(values))

    def GetFunctions(self, request, context):
        return pb.GetFunctions.Response()

    def StopProvider(self, request, context):
        return pb.StopProvider.Response()


class Name:
    """What the server asks its provider for."""

    @staticmethod
    def full_name():
        return "hashicorp/" + os.path.basename(SCHEMA_FILE).removesuffix(".json")


if __name__ == "__main__":
    tf.provider.ProviderServicer = Provider
    tf.runner.run_provider(Name())
