# One key for all that is kept: the volume or the database, logs, secrets and alarms.

locals {
  kms_key_arn = var.kms_key_arn == null ? aws_kms_key.own[0].arn : var.kms_key_arn
}

resource "aws_kms_key" "own" {
  count = var.kms_key_arn == null ? 1 : 0

  description             = "What Cloud Sweeper (${var.name}) keeps"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        # AWS's own default: who may use the key is then said by IAM policies of this account.
        Sid       = "AccountByItsPolicies"
        Effect    = "Allow"
        Principal = { AWS = "arn:${local.partition}:iam::${local.account}:root" }
        Action    = "kms:*"
        Resource  = "*"
      },
      {
        Sid       = "Logs"
        Effect    = "Allow"
        Principal = { Service = "logs.${local.region}.amazonaws.com" }
        Action    = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo", "kms:GenerateDataKey"]
        Resource  = "*"
        Condition = { StringLike = { "kms:EncryptionContext:aws:logs:arn" = [
          "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/${var.name}/*",
          "arn:${local.partition}:logs:${local.region}:${local.account}:log-group:/aws/rds/instance/${var.name}/*",
        ] } }
      },
      {
        Sid       = "AlarmsThroughTopics"
        Effect    = "Allow"
        Principal = { Service = "cloudwatch.amazonaws.com" }
        Action    = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource  = "*"
        Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
      },
    ]
  })
  tags = local.tags
}

resource "aws_kms_alias" "own" {
  count = var.kms_key_arn == null ? 1 : 0

  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.own[0].key_id
}
