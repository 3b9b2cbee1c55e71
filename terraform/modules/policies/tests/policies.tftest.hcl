# The texts of the policies, and what is refused as an input.

variables {
  sweeper_principal_arn = "arn:aws:iam::999988887777:role/cloud-sweeper-sweeper"
  external_id           = "an-id-of-your-own"
}

run "reading_changes_nothing" {
  command = plan

  assert {
    condition     = alltrue([for action in output.read_actions : can(regex(":(Describe|List|Get|Lookup)", action))])
    error_message = "The read policy has an action that is not one of reading: ${join(", ", output.read_actions)}"
  }
  assert {
    condition     = !anytrue([for action in output.read_actions : strcontains(action, "*")])
    error_message = "The read policy has a wildcard among its actions."
  }
  assert {
    condition     = !strcontains(output.read, "cloudwatch:") && !strcontains(output.read, "cloudtrail:") && !strcontains(output.read, "elasticloadbalancing:")
    error_message = "What is switched off is allowed all the same."
  }
}

run "external_id_is_required_by_both_roles" {
  command = plan

  assert {
    condition = alltrue([for trust in [output.read_trust, output.act_trust] :
    jsondecode(trust).Statement[0].Condition.StringEquals["sts:ExternalId"] == "an-id-of-your-own"])
    error_message = "A role can be assumed without the external id."
  }
  assert {
    condition = alltrue([for trust in [output.read_trust, output.act_trust] :
    alltrue([for statement in jsondecode(trust).Statement : statement.Principal.AWS == var.sweeper_principal_arn])])
    error_message = "Somebody else than the sweeper may assume a role."
  }
}

run "acting_asks_for_the_tag" {
  command = plan

  assert {
    condition = alltrue([for statement in jsondecode(output.act).Statement :
    statement.Effect == "Deny" ? true : statement.Condition.StringEquals["aws:ResourceTag/cloud-sweeper:act"] == "allow"])
    error_message = "The act role may do something to an instance without the allowing tag."
  }
  assert {
    condition = alltrue(flatten([for statement in jsondecode(output.act).Statement :
    [for resource in flatten([statement.Resource]) : can(regex(":instance/\\*$", resource))]]))
    error_message = "The act role may do something to another thing than an instance."
  }
}

run "regions_bound_reading_and_acting" {
  command = plan

  variables {
    regions = ["eu-central-1", "eu-west-1"]
  }

  assert {
    condition     = alltrue([for statement in jsondecode(output.read).Statement : statement.Condition.StringEquals["aws:RequestedRegion"][0] == "eu-central-1"])
    error_message = "Other regions than the named ones are read."
  }
  assert {
    condition     = !strcontains(output.read, "ec2:DescribeRegions")
    error_message = "Where regions are named nobody asks for them."
  }
  assert {
    condition     = length(jsondecode(output.act).Statement[0].Resource) == 2
    error_message = "Other regions than the named ones may be acted in."
  }
}

run "every_switch_adds_its_own_actions" {
  command = plan

  variables {
    cloudwatch    = true
    cloudtrail    = true
    before_acting = true
  }

  assert {
    condition     = alltrue([for action in ["cloudwatch:GetMetricData", "cloudtrail:LookupEvents", "ec2:DescribeRouteTables", "elasticloadbalancing:DescribeTargetHealth"] : contains(output.read_actions, action)])
    error_message = "A switch does not add what it needs."
  }
}

run "a_tag_that_the_role_could_set_allows_nothing" {
  command = plan

  variables {
    allow_tag = { key = "cloud-sweeper:stopped-by", value = "anybody" }
  }

  expect_failures = [var.allow_tag]
}

run "a_wildcard_is_no_tag" {
  command = plan

  variables {
    allow_tag = { key = "team", value = "*" }
  }

  expect_failures = [var.allow_tag]
}

run "an_account_is_no_principal" {
  command = plan

  variables {
    sweeper_principal_arn = "arn:aws:iam::999988887777:root"
  }

  expect_failures = [var.sweeper_principal_arn]
}

run "a_short_external_id_is_refused" {
  command = plan

  variables {
    external_id = "short"
  }

  expect_failures = [var.external_id]
}
