variable "organizational_unit_ids" {
  description = "Organizational units whose accounts are read, or the root (r-…) for all of them. Accounts that join later get the roles by themselves."
  type        = list(string)

  validation {
    condition     = length(var.organizational_unit_ids) > 0 && alltrue([for id in var.organizational_unit_ids : can(regex("^(ou-[0-9a-z]{4,32}-[0-9a-z]{8,32}|r-[0-9a-z]{4,32})$", id))])
    error_message = "organizational_unit_ids must name at least one organizational unit (ou-…) or the root (r-…): aws organizations list-roots, list-organizational-units-for-parent."
  }
}

variable "account_ids" {
  description = "The accounts that the sweeper is told of. The StackSet finds them by itself, the sweeper is told by name: aws organizations list-accounts."
  type        = set(string)

  validation {
    condition     = alltrue([for id in var.account_ids : can(regex("^[0-9]{12}$", id))])
    error_message = "account_ids must be account numbers of twelve digits."
  }
}

variable "sweeper_principal_arn" {
  description = "ARN of the role that the sweeper runs as: the output `role_arn` of the sweeper module."
  type        = string
}

variable "external_id" {
  description = "Text of your own that the sweeper shows when it assumes a role. Make one by: openssl rand -hex 16."
  type        = string
}

variable "role_name" {
  description = "Name of the read role. The act role is called the same with -act behind it."
  type        = string
  default     = "cloud-sweeper"

  validation {
    condition     = can(regex("^[[:alnum:]+=,.@_-]{1,50}$", var.role_name))
    error_message = "role_name must be 1 to 50 letters, digits or +=,.@_-."
  }
}

variable "stack_set_name" {
  description = "Name of the StackSet."
  type        = string
  default     = "cloud-sweeper"

  validation {
    condition     = can(regex("^[[:alpha:]][[:alnum:]-]{0,127}$", var.stack_set_name))
    error_message = "stack_set_name must be 1 to 128 letters, digits or hyphens, and begin with a letter."
  }
}

variable "home_region" {
  description = "Region that the stacks are kept in. Roles are global: one region is enough."
  type        = string
}

variable "regions" {
  description = "Regions that are read, and in which may be acted. Empty: every region that an account has enabled."
  type        = list(string)
  default     = []
}

variable "cloudwatch" {
  description = "Whether `aws.cloudwatch` is on."
  type        = bool
  default     = false
}

variable "cloudtrail" {
  description = "Whether `aws.cloudtrail` is on."
  type        = bool
  default     = false
}

variable "act" {
  description = "Makes the act role in every account. null: nothing can be stopped anywhere. allow_tag is the tag that an instance must carry before it may be stopped or started; any_instance = true asks for none. release_addresses = true lets Elastic IP addresses be released that carry that tag, delete_volumes = true EBS volumes be copied and deleted, end_members = true machines of Auto Scaling groups be ended whose group carries it, and terminate_jobs = true stuck jobs of AWS Batch be terminated that carry it; nothing undoes any of these."
  type = object({
    allow_tag    = optional(object({ key = string, value = string }), { key = "cloud-sweeper:act", value = "allow" })
    any_instance = optional(bool, false)
    # An address, a volume, a group and a job always need the tag.
    release_addresses = optional(bool, false)
    delete_volumes    = optional(bool, false)
    end_members       = optional(bool, false)
    terminate_jobs    = optional(bool, false)
  })
  default = null
}

variable "delegated_administrator" {
  description = "Whether this is an account that CloudFormation's StackSets were delegated to, and not the management account."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
