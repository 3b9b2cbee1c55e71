# What the sweeper says of itself. Nothing secret is logged: tokens never are, people by the names that they were enrolled under.

locals {
  metrics_namespace = "CloudSweeper/${var.name}"
}

resource "aws_cloudwatch_log_group" "sweeper" {
  name              = "/${var.name}/sweeper"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.kms_key_arn
  tags              = local.tags
}

resource "aws_cloudwatch_log_group" "database" {
  for_each = local.available == 1 ? toset(["postgresql", "upgrade"]) : toset([])

  # Where RDS writes them.
  name              = "/aws/rds/instance/${var.name}/${each.value}"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.kms_key_arn
  tags              = local.tags
}
