"""Holds a dataset against the requirements of FOCUS 1.2, as its authors publish them for programs: focus.py MODEL CSV

Evaluated are all requirements that look at the dataset alone ("Static") and are no mere advice, of what is supported here; those that only its author can tell
whether they hold ("Dynamic") are not. A check that this program does not know is an error, and so is a model without any. Each requirement that does not hold is
printed, with the first row that shows it.
"""

import csv
import json
import re
import sys
from decimal import Decimal, InvalidOperation

# What charges of Cloud Sweeper have to do with. It knows of no discounts, reservations, other currencies or tokens.
SUPPORTED = {
    "AVAILABILITY_ZONE_SUPPORTED",
    "BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED",
    "MULTIPLE_BILLING_ACCOUNT_TYPES_SUPPORTED",
    "MULTIPLE_PRICING_CATEGORIES_SUPPORTED",
    "MULTIPLE_SUB_ACCOUNT_TYPES_SUPPORTED",
    "NEGOTIATED_PRICING_SUPPORTED",
    "PUBLIC_PRICE_LIST_SUPPORTED",
    "REGION_SUPPORTED",
    "RESOURCE_TYPE_ASSIGNMENT_SUPPORTED",
    "SUB_ACCOUNT_SUPPORTED",
    "TAGGING_SUPPORTED",
    "UNIT_PRICING_SUPPORTED",
    "USAGE_MEASUREMENT_SUPPORTED",
}
BINDING = {"MUST", "MUST NOT"}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
UNIT = re.compile(r"[A-Z][A-Za-z]*( [A-Z][A-Za-z]*)*")


def number(text):
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def is_object(text):
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and not any(isinstance(one, (dict, list)) for one in value.values())


def equals(cell, value):
    if value is None:
        return cell is None
    if cell is None:
        return False
    if isinstance(value, (int, float)):
        return number(cell) == value
    return cell == value


# What is null is no text, number or time that could be wrong.
FORMS = {
    "TypeString": lambda cell: True,
    "FormatString": lambda cell: cell == cell.strip(),
    "TypeDecimal": lambda cell: number(cell) is not None,
    "FormatNumeric": lambda cell: re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", cell) is not None,
    "TypeDateTime": lambda cell: TIME.fullmatch(cell) is not None,
    "FormatDateTime": lambda cell: TIME.fullmatch(cell) is not None,
    "FormatUnit": lambda cell: UNIT.fullmatch(cell) is not None,
    "FormatKeyValue": is_object,
    "FormatCurrency": lambda cell: re.fullmatch(r"[A-Z]{3}", cell) is not None,
    "CheckNationalCurrency": lambda cell: re.fullmatch(r"[A-Z]{3}", cell) is not None,
    "CheckDecimalValue": lambda cell: number(cell) is not None,
}


class Dataset:
    def __init__(self, model, path):
        self.rules = model["ModelRules"]
        with open(path, newline="") as file:
            reader = csv.DictReader(file)
            self.columns = reader.fieldnames or []
            self.rows = [{name: cell or None for name, cell in row.items()} for row in reader]
        self.known = {}
        self.failures = {}

    def holds_in(self, check, row):
        """Whether a check holds in a row."""
        function = check["CheckFunction"]
        if function in ("AND", "OR"):
            held = [self.holds_in(one, row) for one in check["Items"]]
            return all(held) if function == "AND" else any(held)
        if function == "ColumnByColumnEqualsColumnValue":
            one, other, result = (number(row.get(check[name]) or "") for name in ("ColumnAName", "ColumnBName", "ResultColumnName"))
            # Hours have nine decimals, and amounts six.
            return None in (one, other, result) or abs(one * other - result) <= Decimal("0.00001")
        if function in ("CheckSameValue", "CheckNotSameValue"):
            return (row.get(check["ColumnAName"]) == row.get(check["ColumnBName"])) == (function == "CheckSameValue")
        cell = row.get(check["ColumnName"])
        if function == "CheckValue":
            return equals(cell, check["Value"])
        if function == "CheckNotValue":
            return not equals(cell, check["Value"])
        if function == "CheckGreaterOrEqualThanValue":
            return cell is None or (number(cell) is not None and number(cell) >= check["Value"])
        return cell is None or FORMS[function](cell)

    def holds(self, rule_id):
        """Whether a requirement holds, of what it is about."""
        if rule_id not in self.known:
            # No requirement rests on itself; one that would is not held.
            self.known[rule_id] = False
            self.known[rule_id] = self.judged(rule_id)
        return self.known[rule_id]

    def judged(self, rule_id):
        rule = self.rules[rule_id]
        criteria = rule["ValidationCriteria"]
        requirement, condition = criteria["Requirement"], criteria["Condition"]
        is_binding = criteria["Keyword"] in BINDING and rule["Status"] == "Active" and rule["Type"] == "Static"
        if not is_binding or not requirement or not set(rule["ApplicabilityCriteria"]) <= SUPPORTED:
            return True
        return self.of_all(rule_id, requirement, condition)

    def of_all(self, rule_id, requirement, condition):
        function = requirement["CheckFunction"]
        if function == "CheckModelRule":
            return self.holds(requirement["ModelRuleId"])
        if function in ("AND", "OR") and any(one["CheckFunction"] in ("CheckModelRule", "AND", "OR") for one in requirement["Items"]):
            held = [self.of_all(rule_id, one, condition) for one in requirement["Items"]]
            return all(held) if function == "AND" else any(held)
        if function == "ColumnPresent":
            return self.told(rule_id, requirement["ColumnName"] in self.columns, "no such column")
        if function == "CheckDistinctCount":
            others = {}
            for row in self.rows:
                others.setdefault(row.get(requirement["ColumnAName"]), set()).add(row.get(requirement["ColumnBName"]))
            return self.told(rule_id, all(len(one) == requirement["ExpectedCount"] for one in others.values()), "several")
        for row in self.rows:
            if condition and not self.holds_in(condition, row):
                continue
            if not self.holds_in(requirement, row):
                return self.told(rule_id, False, json.dumps({name: row.get(name) for name in names(requirement)}))
        return True

    def told(self, rule_id, is_held, why):
        if not is_held:
            self.failures[rule_id] = why
        return is_held


def names(check):
    if "Items" in check:
        return [name for one in check["Items"] for name in names(one)]
    return [value for key, value in check.items() if key.endswith("Name")]


def main():
    model_path, path = sys.argv[1:]
    with open(model_path) as file:
        model = json.load(file)
    dataset = Dataset(model, path)
    if not dataset.rows:
        sys.exit("the dataset has no rows, so that nothing was looked at")
    is_held = dataset.holds("CostAndUsage-D-000-M")
    for rule_id, why in dataset.failures.items():
        # What another one of several allows is no failure.
        print(f"{rule_id}: {dataset.rules[rule_id]['ValidationCriteria']['MustSatisfy']} ({why})")
    print(f"{len(dataset.known)} requirements, {len(dataset.rows)} rows: {'all hold' if is_held else 'not all hold'}")
    sys.exit(0 if is_held else 1)


if __name__ == "__main__":
    main()
