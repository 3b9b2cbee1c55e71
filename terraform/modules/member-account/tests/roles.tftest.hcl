variables {
  sweeper_principal_arn = "arn:aws:iam::999988887777:role/cloud-sweeper-sweeper"
  external_id           = "an-id-of-your-own"
}

run "reads_and_cannot_act_by_default" {
  assert {
    condition     = length(aws_iam_role.act) == 0 && length(aws_iam_role_policy.act) == 0 && output.act_role == null
    error_message = "There is a role that acts, and nobody asked for one."
  }
  assert {
    condition     = aws_iam_role.read.permissions_boundary == aws_iam_policy.read_boundary[0].arn
    error_message = "The read role has no permissions boundary."
  }
  assert {
    condition     = strcontains(aws_iam_role.read.assume_role_policy, "sts:ExternalId")
    error_message = "The read role can be assumed without an external id."
  }
  assert {
    condition     = output.account.role_arn == aws_iam_role.read.arn && output.account.external_id == var.external_id
    error_message = "The sweeper is told of another role."
  }
}

run "acts_where_that_is_asked_for" {
  variables {
    act = {}
  }

  assert {
    condition     = aws_iam_role.act[0].permissions_boundary == aws_iam_policy.act_boundary[0].arn && aws_iam_role.act[0].max_session_duration == 3600
    error_message = "The act role is not bounded."
  }
  assert {
    condition     = strcontains(aws_iam_role_policy.act[0].policy, "aws:ResourceTag/cloud-sweeper:act")
    error_message = "The act role asks for no tag."
  }
  assert {
    condition     = strcontains(aws_iam_role.act[0].assume_role_policy, "sts:SetSourceIdentity")
    error_message = "The act role's sessions cannot carry who approved."
  }
  assert {
    condition     = strcontains(aws_iam_role_policy.read.policy, "elasticloadbalancing:DescribeTargetHealth")
    error_message = "Nothing would be carried out: what rests on a machine may not be read."
  }
  assert {
    condition     = !strcontains(aws_iam_role_policy.read.policy, "ec2:StopInstances")
    error_message = "What reads may act."
  }
}

run "the_organisations_boundary_takes_the_place_of_its_own" {
  variables {
    act                      = { allow_tag = { key = "team", value = "genomics" } }
    permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary"
  }

  assert {
    condition     = aws_iam_role.read.permissions_boundary == var.permissions_boundary_arn && aws_iam_role.act[0].permissions_boundary == var.permissions_boundary_arn
    error_message = "The given boundary is not used."
  }
  assert {
    condition     = length(aws_iam_policy.read_boundary) == 0 && length(aws_iam_policy.act_boundary) == 0
    error_message = "A boundary is made that nothing uses."
  }
  assert {
    condition     = strcontains(aws_iam_role_policy.act[0].policy, "aws:ResourceTag/team")
    error_message = "The given tag is not asked for."
  }
}

run "a_name_that_is_too_long" {
  command = plan

  variables {
    role_name = "cloud-sweeper-with-a-name-that-leaves-no-place-for-its-ending"
  }

  expect_failures = [var.role_name]
}
