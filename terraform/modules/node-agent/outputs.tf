output "instance_policy" {
  description = "Policy that the instances' roles need, so that the agent can be installed on them."
  value = {
    arn      = aws_iam_policy.instance.arn
    document = local.instance_policy
  }
}

output "user_data" {
  description = "User data of a new instance that has no other, or a part of it (text/x-shellscript): it returns at once, and the agent is installed beside the start."
  value       = local.later.plain
}

output "user_data_ecs" {
  description = "The same in MIME multi-part for a machine of ECS or AWS Batch, with the settings that these need. base64encode it for a launch template."
  value       = local.mime.ecs
}

output "batch_launch_template" {
  description = "The launch template for AWS Batch: id and version, as compute_resources.launch_template takes them; null where there is none."
  value = var.batch_launch_template ? {
    id      = aws_launch_template.batch[0].id
    version = aws_launch_template.batch[0].latest_version
  } : null
}

output "document_name" {
  description = "The document of Systems Manager that installs the agent: aws ssm send-command --document-name …"
  value       = aws_ssm_document.install.name
}

output "starts_policy" {
  description = "Policy of the role that starts the ECS daemon as it was rendered, for review; null where there is none."
  value       = local.starts_policy
}
