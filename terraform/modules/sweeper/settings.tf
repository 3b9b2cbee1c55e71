# The sweeper's configuration file, made of this module's inputs.

locals {
  secrets_dir = "/run/cloud-sweeper-secrets"
  config_dir  = "/etc/cloud-sweeper"
  data_dir    = "/var/lib/cloud-sweeper"

  settings = merge(
    {
      "data_dir"           = local.data_dir
      "api.listen"         = "0.0.0.0:${local.port}"
      "aws.enabled"        = "yes"
      "aws.own_account"    = var.own_account
      "aws.regions"        = var.regions
      "aws.cloudwatch"     = var.cloudwatch
      "aws.cloudtrail"     = var.cloudtrail
      "aws.accounts"       = var.accounts
      "act.end_members"    = var.act.end_members
      "act.terminate_jobs" = var.act.terminate_jobs
      "act.scopes"         = var.act.scopes
      "act.roles"          = var.act.roles
    },
    local.audience == null ? null : { "identity.audience" = local.audience },
    var.approval_policy == null ? null : { "approvals.policy_file" = "${local.config_dir}/policy.toml" },
    var.slack == null ? null : { "slack.channel" = var.slack.channel, "slack.token_file" = "${local.secrets_dir}/slack-token" },
    try(length(var.slack.teams), 0) == 0 ? null : { "slack.teams" = var.slack.teams },
    contains(keys(local.secret_files), "slack-app-token") ? { "slack.app_token_file" = "${local.secrets_dir}/slack-app-token" } : null,
    contains(keys(local.secret_files), "slack-signing-secret") ? { "slack.signing_secret_file" = "${local.secrets_dir}/slack-signing-secret" } : null,
    var.email == null ? null : { "email.host" = var.email.host, "email.port" = var.email.port, "email.from" = var.email.from, "email.to" = var.email.to },
    try(var.email.username, null) == null ? null : { "email.username" = var.email.username },
    contains(keys(local.secret_files), "mail-password") ? { "email.password_file" = "${local.secrets_dir}/mail-password" } : null,
    contains(keys(local.secret_files), "tls.key") ? { "api.tls_certificate" = "${local.secrets_dir}/tls.crt", "api.tls_key" = "${local.secrets_dir}/tls.key" } : null,
    var.google == null ? null : { "gcp.enabled" = "yes", "gcp.projects" = var.google.projects, "gcp.monitoring" = var.google.monitoring },
    try(var.google.act, null) == null ? null : { "act.projects" = [for project in var.google.act.projects : { project = project, credentials_file = "${local.config_dir}/google-act.json" }] },
    local.available == 0 ? null : {
      "store.url"               = local.store_url
      "ingest.join_token_file"  = "${local.secrets_dir}/join-token"
      "api.operator_token_file" = "${local.secrets_dir}/operator-token"
    },
    var.settings,
  )

  # Under which address agents know it: a proof that was made for another sweeper is refused.
  audience = var.domain == null ? null : local.available == 1 ? "https://${var.domain.name}" : "${local.scheme}://${var.domain.name}:${local.port}"

  # TOML: JSON's texts, numbers, booleans and lists of these are TOML, too; tables, lists of tables, and tables in these are written out.
  sections = distinct([for key in keys(local.settings) : strcontains(key, ".") ? split(".", key)[0] : ""])
  toml_values = {
    for key, value in local.settings : key => (
      can(keys(value)) ? format("{ %s }", join(", ", [for name, inner in value : "${jsonencode(name)} = ${jsonencode(inner)}" if inner != null])) :
      can(keys(value[0])) ? format("[%s]", join(", ", [
        for table in value : format("{ %s }", join(", ", [
          for name, inner in table : "${jsonencode(name)} = ${can(keys(inner)) ? format("{ %s }", join(", ", [for key, text in inner : "${jsonencode(key)} = ${jsonencode(text)}"])) : jsonencode(inner)}" if inner != null
        ]))
      ])) :
      jsonencode(value)
    )
  }
  toml = join("\n", concat(
    [for key, value in local.toml_values : "${key} = ${value}" if !strcontains(key, ".")],
    flatten([
      for section in sort([for name in local.sections : name if name != ""]) : concat(
        ["", "[${section}]"],
        [for key, value in local.toml_values : "${split(".", key)[1]} = ${value}" if startswith(key, "${section}.")],
      )
    ]),
    [""],
  ))

  plain_files = merge(
    { "sweeper.toml" = local.toml },
    var.approval_policy == null ? {} : { "policy.toml" = var.approval_policy },
    var.google == null ? {} : { "google.json" = var.google.credentials, "environment" = "GOOGLE_APPLICATION_CREDENTIALS=${local.config_dir}/google.json\n" },
    try(var.google.act, null) == null ? {} : { "google-act.json" = var.google.act.credentials },
    local.available == 1 && var.database.ca_pem != null ? { "database-ca.pem" = var.database.ca_pem } : {},
  )
}
