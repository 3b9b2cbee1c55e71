variables {
  organizational_unit_ids = ["ou-abcd-12345678"]
  account_ids             = ["111122223333", "444455556666"]
  sweeper_principal_arn   = "arn:aws:iam::999988887777:role/cloud-sweeper-sweeper"
  external_id             = "an-id-of-your-own"
  home_region             = "eu-central-1"
}

run "reads_every_account_and_acts_in_none" {
  assert {
    condition     = length(output.accounts) == 2 && output.accounts[0].role_arn == "arn:aws:iam::111122223333:role/cloud-sweeper"
    error_message = "The sweeper is not told of every account."
  }
  assert {
    condition     = output.act_roles == [] && !strcontains(output.template, "ec2:StopInstances")
    error_message = "There is a role that acts, and nobody asked for one."
  }
  assert {
    condition     = jsondecode(output.template).Resources.ReadRole.Properties.PermissionsBoundary.Ref == "ReadBoundary"
    error_message = "The read role has no permissions boundary."
  }
  assert {
    condition     = aws_cloudformation_stack_set.roles.auto_deployment[0].enabled && !aws_cloudformation_stack_set.roles.auto_deployment[0].retain_stacks_on_account_removal
    error_message = "An account that comes later has no roles, or one that leaves keeps them."
  }
}

run "acts_where_that_is_asked_for" {
  variables {
    act = {}
  }

  assert {
    condition     = length(output.act_roles) == 2 && output.act_roles[0].role_arn == "arn:aws:iam::111122223333:role/cloud-sweeper-act"
    error_message = "The sweeper is not told of the act roles."
  }
  assert {
    condition     = jsondecode(output.template).Resources.ActRole.Properties.PermissionsBoundary.Ref == "ActBoundary"
    error_message = "The act role has no permissions boundary."
  }
}

run "an_account_is_no_unit" {
  command = plan

  variables {
    organizational_unit_ids = ["111122223333"]
  }

  expect_failures = [var.organizational_unit_ids]
}
