"""GetProducts, answered from a price list file: one product per line, in the price list's own format.

Requests are checked against botocore's model of the service (types, required and unknown members, enumerations), and
filters against the attributes that the list knows, so that a request which AWS would refuse is refused here.
"""

import json

import botocore.session
from botocore.validate import ParamValidator


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class PriceList:
    def __init__(self, path):
        self.products = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        self.known = {name for product in self.products for name in self.attributes(product)}
        model = botocore.session.get_session().get_service_model("pricing")
        self.shape = model.operation_model("GetProducts").input_shape

    @staticmethod
    def attributes(product):
        own = {"ServiceCode": product["serviceCode"], "productFamily": product["product"]["productFamily"]}
        return product["product"]["attributes"] | own

    def get_products(self, request):
        faults = [*strict(self.shape, request)]
        report = ParamValidator().validate(request, self.shape)
        if report.has_errors():
            faults.append(report.generate_report())
        filters = request.get("Filters", [])
        faults += [f"no attribute {f['Field']}" for f in filters if not faults and f["Field"] not in self.known]
        if faults:
            raise Refused("InvalidParameterException", "; ".join(faults))
        start = int(request.get("NextToken") or 0)
        size = min(request.get("MaxResults", 100), 100)
        found = [
            product
            for product in self.products
            if product["serviceCode"] == request["ServiceCode"]
            and all(self.attributes(product).get(f["Field"]) == f["Value"] for f in filters)
        ]
        answer = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(p) for p in found[start : start + size]]}
        if start + size < len(found):
            answer["NextToken"] = str(start + size)
        return answer


def strict(shape, value, path="request"):
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
    elif getattr(shape, "enum", None) and value not in shape.enum:
        yield f"{path} is {value!r}, not one of {', '.join(shape.enum)}"
