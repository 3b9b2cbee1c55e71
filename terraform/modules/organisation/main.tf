# The roles of member-account in every account of an organisation, by one StackSet: Terraform itself needs a provider for each account, a StackSet needs none.
#
# Apply it in the management account, or where StackSets were delegated to. A StackSet does not make the roles in the management account itself: use member-account there.

data "aws_partition" "here" {}

module "policies" {
  source = "../policies"

  partition             = data.aws_partition.here.partition
  regions               = var.regions
  cloudwatch            = var.cloudwatch
  cloudtrail            = var.cloudtrail
  before_acting         = var.act != null
  allow_tag             = try(var.act.any_instance, false) ? null : try(var.act.allow_tag, null)
  release_tag           = try(var.act.release_addresses, false) ? var.act.allow_tag : null
  delete_tag            = try(var.act.delete_volumes, false) ? var.act.allow_tag : null
  end_tag               = try(var.act.end_members, false) ? var.act.allow_tag : null
  terminate_tag         = try(var.act.terminate_jobs, false) ? var.act.allow_tag : null
  sweeper_principal_arn = var.sweeper_principal_arn
  external_id           = var.external_id
}

locals {
  acts     = var.act != null
  act_name = "${var.role_name}-act"
  tags     = merge(var.tags, { "cloud-sweeper:part" = "organisation" })

  read_resources = {
    ReadBoundary = {
      Type = "AWS::IAM::ManagedPolicy"
      Properties = {
        ManagedPolicyName = "${var.role_name}-boundary"
        Description       = "What Cloud Sweeper's read role may do at most"
        PolicyDocument    = jsondecode(module.policies.read_boundary)
      }
    }
    ReadRole = {
      Type = "AWS::IAM::Role"
      Properties = {
        RoleName                 = var.role_name
        Description              = "Cloud Sweeper reads this account by it, and can change nothing"
        AssumeRolePolicyDocument = jsondecode(module.policies.read_trust)
        PermissionsBoundary      = { Ref = "ReadBoundary" }
        MaxSessionDuration       = 3600
        Policies                 = [{ PolicyName = "read", PolicyDocument = jsondecode(module.policies.read) }]
      }
    }
  }
  act_resources = {
    ActBoundary = {
      Type = "AWS::IAM::ManagedPolicy"
      Properties = {
        ManagedPolicyName = "${local.act_name}-boundary"
        Description       = "What Cloud Sweeper's act role may do at most"
        PolicyDocument    = jsondecode(module.policies.act_boundary)
      }
    }
    ActRole = {
      Type = "AWS::IAM::Role"
      Properties = {
        RoleName                 = local.act_name
        Description              = "Cloud Sweeper stops and starts instances by it, after people have approved exactly that"
        AssumeRolePolicyDocument = jsondecode(module.policies.act_trust)
        PermissionsBoundary      = { Ref = "ActBoundary" }
        MaxSessionDuration       = 3600
        Policies                 = [{ PolicyName = "act", PolicyDocument = jsondecode(module.policies.act) }]
      }
    }
  }
  template = jsonencode({
    AWSTemplateFormatVersion = "2010-09-09"
    Description              = "Roles by which Cloud Sweeper reads this account"
    Resources                = merge(local.read_resources, { for name, resource in local.act_resources : name => resource if local.acts })
  })
}

resource "aws_cloudformation_stack_set" "roles" {
  name             = var.stack_set_name
  description      = "Roles by which Cloud Sweeper reads the organisation's accounts"
  permission_model = "SERVICE_MANAGED"
  call_as          = var.delegated_administrator ? "DELEGATED_ADMIN" : "SELF"
  capabilities     = ["CAPABILITY_NAMED_IAM"]
  template_body    = local.template
  tags             = local.tags

  auto_deployment {
    enabled = true
    # An account that leaves takes no open door with it.
    retain_stacks_on_account_removal = false
  }

  operation_preferences {
    failure_tolerance_percentage = 10
    max_concurrent_percentage    = 100
  }

  lifecycle {
    # AWS fills it in for this kind of StackSet, and then wants it back unchanged.
    ignore_changes = [administration_role_arn]
  }
}

resource "aws_cloudformation_stack_set_instance" "units" {
  stack_set_name            = aws_cloudformation_stack_set.roles.name
  stack_set_instance_region = var.home_region
  call_as                   = var.delegated_administrator ? "DELEGATED_ADMIN" : "SELF"

  deployment_targets {
    organizational_unit_ids = var.organizational_unit_ids
  }
}
