variables {
  project_id     = "omics-finops"
  project_number = "123456789012"
  projects       = ["omics-prod-1", "omics-dev-1"]
  aws            = { account_id = "123456789012", role_name = "cloud-sweeper-sweeper" }
}

run "reads_exactly_what_is_called" {
  assert {
    condition     = length(google_project_iam_custom_role.read) == 2 && alltrue([for role in google_project_iam_custom_role.read : alltrue([for permission in role.permissions : can(regex("\\.(list|get)$", permission))])])
    error_message = "The role may do more than read."
  }
  assert {
    condition     = !contains(output.permissions, "monitoring.timeSeries.list")
    error_message = "Cloud Monitoring is read, and nobody switched it on."
  }
}

run "lets_the_sweepers_role_in_and_nobody_else" {
  assert {
    condition     = google_iam_workload_identity_pool_provider.aws.attribute_condition == "attribute.aws_role == 'arn:aws:sts::123456789012:assumed-role/cloud-sweeper-sweeper'"
    error_message = "Other roles of AWS come in, too."
  }
  assert {
    condition     = endswith(google_service_account_iam_member.sweeper.member, "/attribute.aws_role/arn:aws:sts::123456789012:assumed-role/cloud-sweeper-sweeper")
    error_message = "The service account lets others than the sweeper in."
  }
  assert {
    condition     = jsondecode(output.google.credentials).type == "external_account" && !strcontains(output.google.credentials, "private_key")
    error_message = "The credentials hold a key."
  }
}

run "a_role_without_its_path" {
  command = plan

  variables {
    aws = { account_id = "123456789012", role_name = "path/role" }
  }

  expect_failures = [var.aws]
}
