output "account" {
  description = "The account, as the sweeper module's `accounts` takes it. Its regions are the ones that are read."
  value = {
    role_arn    = aws_iam_role.read.arn
    external_id = var.external_id
    regions     = var.regions
  }
}

output "read_role_arn" {
  description = "ARN of the read role."
  value       = aws_iam_role.read.arn
}

output "act_role" {
  description = "The act role, as the sweeper module's `act.roles` takes it; null where there is none."
  value = local.acts ? {
    role_arn    = aws_iam_role.act[0].arn
    external_id = var.external_id
  } : null
}

output "policies" {
  description = "The policies as they were rendered, for review: read, read_trust, act, act_trust and their boundaries."
  value = merge(
    { read = module.policies.read, read_trust = module.policies.read_trust },
    local.has_boundary ? {} : { read_boundary = module.policies.read_boundary },
    local.acts ? { act = module.policies.act, act_trust = module.policies.act_trust } : {},
    local.acts && !local.has_boundary ? { act_boundary = module.policies.act_boundary } : {},
  )
}
