locals {
  address = local.available == 1 ? aws_lb.sweeper[0].dns_name : var.public ? aws_instance.sweeper[0].public_ip : aws_instance.sweeper[0].private_ip
  url     = local.audience != null ? local.audience : local.available == 1 ? "https://${local.address}" : "${local.scheme}://${local.address}:${local.port}"
}

output "url" {
  description = "Address of the sweeper: the agents' sweeper_url. With certificate_arn and without domain, agents need the certificate's own name, which must lead here."
  value       = local.url
}

output "role_arn" {
  description = "The role that the sweeper runs as: `sweeper_principal_arn` of member-account and organisation."
  value       = aws_iam_role.sweeper.arn
}

output "join_token_secret_arn" {
  description = "Secret with the fleet token: `join_token_secret_arn` of node-agent."
  value       = aws_secretsmanager_secret.join_token.arn
}

output "operator_token_secret_arn" {
  description = "Size highly_available: secret with the operator token. Size small: null, the token is in /var/lib/cloud-sweeper/operator-token on the instance."
  value       = local.available == 1 ? aws_secretsmanager_secret.operator_token[0].arn : null
}

output "kms_key_arn" {
  description = "The key that everything is encrypted by."
  value       = local.kms_key_arn
}

output "instance_id" {
  description = "Size small: the instance. aws ssm start-session --target …"
  value       = local.small == 1 ? aws_instance.sweeper[0].id : null
}

output "cluster_name" {
  description = "Size highly_available: the ECS cluster."
  value       = local.available == 1 ? aws_ecs_cluster.sweeper[0].name : null
}

output "administration" {
  description = "Size highly_available: what `aws ecs run-task` needs to start a sweeper for its commands (terraform/README.md)."
  value = local.available == 0 ? null : {
    cluster         = aws_ecs_cluster.sweeper[0].name
    task_definition = aws_ecs_task_definition.administration[0].family
    subnets         = local.private_subnet_ids
    security_groups = [aws_security_group.sweeper.id]
  }
}

output "security_group_id" {
  description = "The sweeper's security group."
  value       = aws_security_group.sweeper.id
}

output "vpc_id" {
  description = "The VPC that it is in."
  value       = local.vpc_id
}

output "private_subnet_ids" {
  description = "The private subnets that it is in."
  value       = local.private_subnet_ids
}

output "log_group_name" {
  description = "Where the sweeper's log is."
  value       = aws_cloudwatch_log_group.sweeper.name
}

output "alarm_topic_arn" {
  description = "The topic of the alarms."
  value       = local.alarm_topic_arn
}

output "configuration" {
  description = "The sweeper's configuration file as it was rendered, for review. It holds no secret."
  value       = local.toml
}

output "policy" {
  description = "The policy of the sweeper's role as it was rendered, for review."
  value       = local.own_policy
}
