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
    condition     = !contains(output.permissions.read, "monitoring.timeSeries.list")
    error_message = "Cloud Monitoring is read, and nobody switched it on."
  }
}

run "reads_prices" {
  assert {
    condition     = google_project_service.cloudbilling.project == "omics-finops" && google_project_service.cloudbilling.service == "cloudbilling.googleapis.com" && !google_project_service.cloudbilling.disable_on_destroy
    error_message = "The catalogue of prices cannot be read, or its API is switched off with the sweeper."
  }
}

run "does_nothing_unless_it_is_asked_for" {
  assert {
    condition     = length(google_service_account.act) == 0 && length(google_project_iam_custom_role.act) == 0 && length(google_service_account_iam_member.act) == 0 && output.google.act == null
    error_message = "Somebody may act, and nobody asked for that."
  }
}

run "acts_where_it_is_asked_for_and_reads_nothing_by_that_account" {
  variables {
    act_projects = ["omics-dev-1"]
  }

  assert {
    condition     = keys(google_project_iam_custom_role.act) == ["omics-dev-1"] && google_project_iam_custom_role.act["omics-dev-1"].permissions == toset(["compute.instances.stop", "compute.instances.start", "compute.instances.list"])
    error_message = "Who acts may do something else, or elsewhere."
  }
  assert {
    condition     = google_service_account.act[0].account_id != google_service_account.sweeper.account_id && !strcontains(output.google.act.credentials, "private_key")
    error_message = "Who acts is who reads, or has a key."
  }
  assert {
    condition     = contains(google_project_iam_custom_role.read["omics-dev-1"].permissions, "compute.instances.listReferrers") && !contains(google_project_iam_custom_role.read["omics-prod-1"].permissions, "compute.instances.listReferrers")
    error_message = "What reads may not see what has a machine, or may where nothing is done."
  }
}

run "a_project_that_is_not_read" {
  command = plan

  variables {
    act_projects = ["omics-other-1"]
  }

  expect_failures = [var.act_projects]
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
