"""Answers in place of a service, held to AWS's own model of it on both sides.

A stand-in is a function from (account, region, request) to an answer, or to a `Refused`. What it is asked is checked against
botocore's model first: types, required and unknown members, enumerations. So is what it answers, so that nothing can be
proven with an answer that AWS could not give.
"""

from botocore.validate import ParamValidator
from moto.core.utils import get_service_model


class Refused(Exception):
    """What AWS would not answer."""

    def __init__(self, code, message, status=400):
        super().__init__(message)
        self.code, self.status = code, status


class StandIns:
    """Which calls are answered here, and by whom."""

    def __init__(self):
        self.answering = {}

    def add(self, service, action, answer, left_out=()):
        """`left_out` are members of the answer that the model calls required and AWS leaves out all the same."""
        self.answering[service, action] = answer, frozenset(left_out)

    def has(self, call):
        return (call.service, call.action) in self.answering

    def answer(self, call, account, region):
        model = get_service_model(call.service).operation_model(call.action)
        faults = faults_of(model.input_shape, call.parameters)
        if faults:
            raise Refused("ValidationException", "; ".join(faults))
        answering, left_out = self.answering[call.service, call.action]
        told = answering(account, region, call.parameters)
        faults = faults_of(model.output_shape, told, left_out)
        if faults:
            raise ValueError(f"the stand-in for {call.service} {call.action} answers what AWS cannot: {'; '.join(faults)}")
        return told


def faults_of(shape, value, left_out=frozenset()):
    """In what a value is not of a shape."""
    report = ParamValidator().validate(value, shape)
    typed = [error for error in report._errors if error[2].get("required_name") not in left_out]
    return [*strict(shape, value), *map(report._format_error, typed)]


def strict(shape, value, path="it"):
    """What botocore's own validator lets through: unknown members and words outside an enumeration."""
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, inner in value.items():
            if name in shape.members:
                yield from strict(shape.members[name], inner, f"{path}.{name}")
            else:
                yield f"{path} has no member {name}"
    elif shape.type_name == "list" and isinstance(value, list):
        for n, inner in enumerate(value):
            yield from strict(shape.member, inner, f"{path}[{n}]")
    elif shape.type_name == "map" and isinstance(value, dict):
        for key, inner in value.items():
            yield from strict(shape.value, inner, f"{path}[{key}]")
    elif getattr(shape, "enum", None) and value not in shape.enum:
        yield f"{path} is {value!r}, not one of {', '.join(shape.enum)}"
