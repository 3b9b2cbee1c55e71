"""GetProducts, answered from a price list file: one product per line, in the price list's own format.

Filters are checked against the attributes that the list knows, so that a request which AWS would refuse is refused here.
"""

import json

from standin import Refused


class PriceList:
    def __init__(self, path):
        self.products = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        self.known = {name for product in self.products for name in self.attributes(product)}

    @staticmethod
    def attributes(product):
        own = {"ServiceCode": product["serviceCode"]}
        # Addresses have no family.
        family = product["product"].get("productFamily")
        return product["product"]["attributes"] | own | ({"productFamily": family} if family else {})

    def get_products(self, _account, _region, request):
        filters = request.get("Filters", [])
        unknown = [f"no attribute {f['Field']}" for f in filters if f["Field"] not in self.known]
        if unknown:
            raise Refused("InvalidParameterException", "; ".join(unknown))
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
