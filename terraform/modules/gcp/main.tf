# Google Cloud, read by a sweeper that runs in AWS: a role with exactly what is called, in each project, and a service account without a key, whose place the sweeper's role of AWS takes by
# workload identity federation. Where that is asked for, another service account acts, by a role that stops and starts machines and does nothing else.

locals {
  # tests/lab/terraform/policies.py holds them to docs/operations.md.
  permissions = concat(
    ["compute.instances.list", "compute.disks.list", "compute.addresses.list", "compute.instanceGroupManagers.list", "compute.machineTypes.get"],
    var.monitoring ? ["monitoring.timeSeries.list"] : [],
  )
  # docs/approvals.md names both.
  before_acting = [
    "compute.instances.get", "compute.instances.listReferrers", "compute.routes.list", "compute.targetPools.list", "compute.targetInstances.list",
    "compute.networkEndpointGroups.list", "compute.networkEndpointGroups.get", "compute.zoneOperations.get",
  ]
  act_permissions = ["compute.instances.stop", "compute.instances.start", "compute.instances.list"]

  role_id = replace(var.name, "-", "_")
  # As Google sees a session of that role, whatever its name.
  assumed_role = "arn:aws:sts::${var.aws.account_id}:assumed-role/${var.aws.role_name}"
  pool         = "//iam.googleapis.com/projects/${var.project_number}/locations/global/workloadIdentityPools/${google_iam_workload_identity_pool.aws.workload_identity_pool_id}"
  provider     = "${local.pool}/providers/${google_iam_workload_identity_pool_provider.aws.workload_identity_pool_provider_id}"
}

resource "google_service_account" "sweeper" {
  project      = var.project_id
  account_id   = var.name
  display_name = "Cloud Sweeper"
  description  = "Reads machines, disks, addresses and groups; can change nothing"
}

# The catalogue of prices is public: to read it takes no permission, but its API switched on where whoever asks is kept.
resource "google_project_service" "cloudbilling" {
  project            = var.project_id
  service            = "cloudbilling.googleapis.com"
  disable_on_destroy = false
}

resource "google_project_iam_custom_role" "read" {
  for_each = var.projects

  project     = each.value
  role_id     = local.role_id
  title       = "Cloud Sweeper, reading"
  description = "Exactly what Cloud Sweeper calls"
  permissions = concat(local.permissions, contains(var.act_projects, each.value) ? local.before_acting : [])
}

resource "google_project_iam_member" "read" {
  for_each = var.projects

  project = each.value
  role    = google_project_iam_custom_role.read[each.value].id
  member  = "serviceAccount:${google_service_account.sweeper.email}"
}

resource "google_iam_workload_identity_pool" "aws" {
  project                   = var.project_id
  workload_identity_pool_id = var.name
  display_name              = "Cloud Sweeper in AWS"
}

resource "google_iam_workload_identity_pool_provider" "aws" {
  # checkov:skip=CKV_GCP_125: it is about providers of GitHub; this one trusts AWS, and of it one role of one account.
  project                            = var.project_id
  workload_identity_pool_id          = google_iam_workload_identity_pool.aws.workload_identity_pool_id
  workload_identity_pool_provider_id = "aws"
  display_name                       = "The sweeper's role"

  attribute_mapping = {
    "google.subject"     = "assertion.arn"
    "attribute.aws_role" = "assertion.arn.contains('assumed-role') ? assertion.arn.extract('{account_arn}assumed-role/') + 'assumed-role/' + assertion.arn.extract('assumed-role/{role_name}/') : assertion.arn"
  }
  # Nobody else's sessions come in, whatever is bound later.
  attribute_condition = "attribute.aws_role == '${local.assumed_role}'"

  aws {
    account_id = var.aws.account_id
  }
}

resource "google_service_account_iam_member" "sweeper" {
  service_account_id = google_service_account.sweeper.name
  role               = "roles/iam.workloadIdentityUser"
  member             = "principalSet:${local.pool}/attribute.aws_role/${local.assumed_role}"
}

# What acts reads nothing (whoever asks about rights must hold `compute.instances.list`), and what reads does not act.
resource "google_service_account" "act" {
  count = length(var.act_projects) > 0 ? 1 : 0

  project      = var.project_id
  account_id   = "${var.name}-act"
  display_name = "Cloud Sweeper, acting"
  description  = "Stops and starts machines that a person has approved"
}

resource "google_project_iam_custom_role" "act" {
  for_each = var.act_projects

  project     = each.value
  role_id     = "${local.role_id}_act"
  title       = "Cloud Sweeper, acting"
  description = "Exactly what Cloud Sweeper calls once a person has approved it"
  permissions = local.act_permissions
}

resource "google_project_iam_member" "act" {
  for_each = var.act_projects

  project = each.value
  role    = google_project_iam_custom_role.act[each.value].id
  member  = "serviceAccount:${google_service_account.act[0].email}"
}

resource "google_service_account_iam_member" "act" {
  count = length(var.act_projects) > 0 ? 1 : 0

  service_account_id = google_service_account.act[0].name
  role               = "roles/iam.workloadIdentityUser"
  member             = "principalSet:${local.pool}/attribute.aws_role/${local.assumed_role}"
}
