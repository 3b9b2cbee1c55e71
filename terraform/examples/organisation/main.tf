# Every account of an organisation, by a StackSet: applied in the management account, or where StackSets were delegated to. The sweeper runs wherever its role is.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
  }
}

provider "aws" {
  region = var.region
}

variable "region" {
  description = "Region that the stacks are kept in."
  type        = string
}

variable "units" {
  description = "Organizational units by a name of your own: their id, the numbers of their accounts, and whether approved plans are carried out there."
  type = map(object({
    id          = string
    account_ids = set(string)
    act         = optional(bool, false)
  }))
}

variable "sweeper_role_arn" {
  description = "The role that the sweeper runs as: output role_arn of the sweeper module."
  type        = string
}

variable "external_id" {
  description = "A text of your own, which the sweeper shows where it assumes a role: openssl rand -hex 16"
  type        = string
}

# A StackSet for each unit, so that acting can be allowed in one and not in another.
module "organisation" {
  source   = "../../modules/organisation"
  for_each = var.units

  organizational_unit_ids = [each.value.id]
  account_ids             = each.value.account_ids
  sweeper_principal_arn   = var.sweeper_role_arn
  external_id             = var.external_id
  stack_set_name          = "cloud-sweeper-${each.key}"
  home_region             = var.region
  act                     = each.value.act ? {} : null
}

output "accounts" {
  description = "For the sweeper module's `accounts`."
  value       = flatten([for unit in module.organisation : unit.accounts])
}

output "act_roles" {
  description = "For the sweeper module's `act.roles`."
  value       = flatten([for unit in module.organisation : unit.act_roles])
}
