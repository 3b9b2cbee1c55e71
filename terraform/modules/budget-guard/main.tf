# What the sweeper itself costs: a budget that is told at 80 % and when the month is foreseen to be above it, and a cap on what is billed by the call.

data "aws_partition" "here" {}

data "aws_caller_identity" "here" {}

locals {
  account = data.aws_caller_identity.here.account_id
  tags    = merge(var.tags, { "cloud-sweeper:part" = "budget-guard" })
  capped  = var.cap == null ? 0 : 1
  notices = {
    early    = { threshold = 80, kind = "ACTUAL" }
    exceeded = { threshold = 100, kind = "ACTUAL" }
    foreseen = { threshold = 100, kind = "FORECASTED" }
  }

  deny = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "AboveItsBudget"
      Effect   = "Deny"
      Action   = "cloudwatch:GetMetricData"
      Resource = "*"
    }]
  })
  apply = local.capped == 0 ? null : jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "ApplyTheCap"
      Effect    = "Allow"
      Action    = ["iam:AttachRolePolicy", "iam:DetachRolePolicy"]
      Resource  = "arn:${data.aws_partition.here.partition}:iam::${local.account}:role/${var.cap.role_name}"
      Condition = { ArnEquals = { "iam:PolicyARN" = aws_iam_policy.deny[0].arn } }
    }]
  })
}

resource "aws_budgets_budget" "sweeper" {
  name         = var.name
  budget_type  = "COST"
  limit_amount = format("%.2f", var.monthly_usd)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"

  cost_filter {
    name   = "TagKeyValue"
    values = [format("user:%s$%s", var.cost_allocation.key, var.cost_allocation.value)]
  }

  dynamic "notification" {
    for_each = local.notices
    content {
      comparison_operator        = "GREATER_THAN"
      threshold                  = notification.value.threshold
      threshold_type             = "PERCENTAGE"
      notification_type          = notification.value.kind
      subscriber_email_addresses = var.emails
    }
  }

  tags = local.tags
}

# ---- The cap ----

resource "aws_iam_policy" "deny" {
  count = local.capped

  name        = "${var.name}-above-its-budget"
  description = "Denies Cloud Sweeper what AWS bills by the call"
  policy      = local.deny
  tags        = local.tags
}

resource "aws_iam_role" "budget" {
  count = local.capped

  name        = "${var.name}-budget"
  description = "AWS Budgets attaches one policy to Cloud Sweeper's role, and takes it away again"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "Budgets"
      Effect    = "Allow"
      Principal = { Service = "budgets.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
  tags = local.tags
}

resource "aws_iam_role_policy" "budget" {
  count = local.capped

  name   = "attach"
  role   = aws_iam_role.budget[0].name
  policy = local.apply
}

resource "aws_budgets_budget_action" "cap" {
  count = local.capped

  budget_name        = aws_budgets_budget.sweeper.name
  action_type        = "APPLY_IAM_POLICY"
  approval_model     = "AUTOMATIC"
  notification_type  = "ACTUAL"
  execution_role_arn = aws_iam_role.budget[0].arn

  action_threshold {
    action_threshold_type  = "PERCENTAGE"
    action_threshold_value = 100
  }

  definition {
    iam_action_definition {
      policy_arn = aws_iam_policy.deny[0].arn
      roles      = [var.cap.role_name]
    }
  }

  dynamic "subscriber" {
    for_each = toset(var.emails)
    content {
      subscription_type = "EMAIL"
      address           = subscriber.value
    }
  }

  tags = local.tags
}
