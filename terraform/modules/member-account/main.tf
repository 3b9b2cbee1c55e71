# An account that the sweeper reads, and in which it may act where that is switched on: two roles, so that what reads never acts and what acts reads nothing.

data "aws_caller_identity" "here" {}

data "aws_partition" "here" {}

module "policies" {
  source = "../policies"

  partition             = data.aws_partition.here.partition
  account_id            = data.aws_caller_identity.here.account_id
  regions               = var.regions
  cloudwatch            = var.cloudwatch
  cloudtrail            = var.cloudtrail
  before_acting         = var.act != null
  allow_tag             = try(var.act.any_instance, false) ? null : try(var.act.allow_tag, null)
  release_tag           = try(var.act.release_addresses, false) ? var.act.allow_tag : null
  delete_tag            = try(var.act.delete_volumes, false) ? var.act.allow_tag : null
  end_tag               = try(var.act.end_members, false) ? var.act.allow_tag : null
  terminate_tag         = try(var.act.terminate_jobs, false) ? var.act.allow_tag : null
  sweeper_principal_arn = var.sweeper_principal_arn
  external_id           = var.external_id
}

locals {
  acts         = var.act != null
  has_boundary = var.permissions_boundary_arn != null
  tags         = merge(var.tags, { "cloud-sweeper:part" = "member-account" })
}

resource "aws_iam_policy" "read_boundary" {
  count = local.has_boundary ? 0 : 1

  name        = "${var.role_name}-boundary"
  description = "What Cloud Sweeper's read role may do at most"
  policy      = module.policies.read_boundary
  tags        = local.tags
}

resource "aws_iam_role" "read" {
  name                 = var.role_name
  description          = "Cloud Sweeper reads this account by it, and can change nothing"
  assume_role_policy   = module.policies.read_trust
  permissions_boundary = local.has_boundary ? var.permissions_boundary_arn : aws_iam_policy.read_boundary[0].arn
  max_session_duration = 3600
  tags                 = local.tags
}

resource "aws_iam_role_policy" "read" {
  name   = "read"
  role   = aws_iam_role.read.name
  policy = module.policies.read
}

resource "aws_iam_policy" "act_boundary" {
  count = local.acts && !local.has_boundary ? 1 : 0

  name        = "${var.role_name}-act-boundary"
  description = "What Cloud Sweeper's act role may do at most"
  policy      = module.policies.act_boundary
  tags        = local.tags
}

resource "aws_iam_role" "act" {
  count = local.acts ? 1 : 0

  name                 = "${var.role_name}-act"
  description          = "Cloud Sweeper stops and starts instances by it, after people have approved exactly that"
  assume_role_policy   = module.policies.act_trust
  permissions_boundary = local.has_boundary ? var.permissions_boundary_arn : aws_iam_policy.act_boundary[0].arn
  max_session_duration = 3600
  tags                 = local.tags
}

resource "aws_iam_role_policy" "act" {
  count = local.acts ? 1 : 0

  name   = "act"
  role   = aws_iam_role.act[0].name
  policy = module.policies.act
}
