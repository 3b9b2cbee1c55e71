# Secrets are kept in Secrets Manager and never in Terraform's state: these have no value until somebody, or the instance, puts one there.

# What every agent joins with. Size small: the instance puts the one there that its sweeper makes at its first start.
resource "aws_secretsmanager_secret" "join_token" {
  # checkov:skip=CKV2_AWS_57: agents show it once and hold a key of their own from then on. A new one needs the sweepers to be started again, which a rotation by itself does not do.
  name                    = "${var.name}/join-token"
  description             = "Fleet token: the join secret that Cloud Sweeper's agents share"
  kms_key_id              = local.kms_key_arn
  recovery_window_in_days = 7
  tags                    = local.tags
}

# What Prometheus shows to read /metrics.
resource "aws_secretsmanager_secret" "operator_token" {
  # checkov:skip=CKV2_AWS_57: as above; it opens metrics and the list of scopes alone.
  count = local.available

  name                    = "${var.name}/operator-token"
  description             = "Operator token: opens /metrics and /v1/scopes of Cloud Sweeper"
  kms_key_id              = local.kms_key_arn
  recovery_window_in_days = 7
  tags                    = local.tags
}

locals {
  # Secrets that the sweeper reads from files, by the name of the file. Keys are known when it is planned; ARNs may not be.
  secret_files = merge(
    var.slack == null ? {} : merge(
      { "slack-token" = var.slack.token_secret_arn },
      var.slack.app_token_secret_arn == null ? {} : { "slack-app-token" = var.slack.app_token_secret_arn },
      var.slack.signing_secret_secret_arn == null ? {} : { "slack-signing-secret" = var.slack.signing_secret_secret_arn },
    ),
    var.email == null ? {} : var.email.password_secret_arn == null ? {} : { "mail-password" = var.email.password_secret_arn },
    local.small == 1 && var.tls != null ? { "tls.crt" = var.tls.certificate_secret_arn, "tls.key" = var.tls.key_secret_arn } : {},
    local.available == 1 ? {
      "join-token"     = aws_secretsmanager_secret.join_token.arn
      "operator-token" = aws_secretsmanager_secret.operator_token[0].arn
    } : {},
  )
  secret_keys = concat([local.kms_key_arn], var.secret_kms_key_arns)
}
