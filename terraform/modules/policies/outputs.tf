output "read" {
  description = "Policy of the read role."
  value       = jsonencode(local.read)
}

output "read_actions" {
  description = "The actions of the read policy."
  value       = sort(flatten(local.read_statements[*].Action))
}

output "read_trust" {
  description = "Trust policy of the read role."
  value       = jsonencode({ Version = "2012-10-17", Statement = [local.assume] })
}

output "act" {
  description = "Policy of the act role."
  value       = jsonencode({ Version = "2012-10-17", Statement = concat(local.act_statements, [local.exempt]) })
}

output "act_trust" {
  description = "Trust policy of the act role."
  value       = jsonencode({ Version = "2012-10-17", Statement = [local.assume, local.in_a_name] })
}

output "read_boundary" {
  description = "Permissions boundary of the read role: what it may do at most is what it does."
  value       = jsonencode(local.read)
}

output "act_boundary" {
  description = "Permissions boundary of the act role."
  value       = jsonencode({ Version = "2012-10-17", Statement = local.act_boundary })
}
