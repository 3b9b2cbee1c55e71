# The sweeper itself. Files: network (a VPC of its own, or an existing one), small (one instance), service and database (several tasks over PostgreSQL), iam, settings (its configuration),
# secrets, keys, logs, alarms.

data "aws_caller_identity" "here" {}

data "aws_partition" "here" {}

data "aws_region" "here" {}

locals {
  small     = var.size == "small" ? 1 : 0
  available = var.size == "highly_available" ? 1 : 0

  account   = data.aws_caller_identity.here.account_id
  partition = data.aws_partition.here.partition
  region    = data.aws_region.here.region

  port = 8090
  tags = merge(var.tags, { "cloud-sweeper:part" = "sweeper" })
}
