output "accounts" {
  description = "The accounts, as the sweeper module's `accounts` takes them."
  value = [
    for id in sort(var.account_ids) : {
      role_arn    = "arn:${data.aws_partition.here.partition}:iam::${id}:role/${var.role_name}"
      external_id = var.external_id
      regions     = var.regions
    }
  ]
}

output "act_roles" {
  description = "The act roles, as the sweeper module's `act.roles` takes them; empty where there are none."
  value = [
    for id in local.acts ? sort(var.account_ids) : [] : {
      role_arn    = "arn:${data.aws_partition.here.partition}:iam::${id}:role/${local.act_name}"
      external_id = var.external_id
    }
  ]
}

output "template" {
  description = "The CloudFormation template as it was rendered, for review."
  value       = local.template
}
