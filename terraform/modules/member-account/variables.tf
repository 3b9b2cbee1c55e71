variable "sweeper_principal_arn" {
  description = "ARN of the role that the sweeper runs as: the output `role_arn` of the sweeper module."
  type        = string
}

variable "external_id" {
  description = "Text of your own that the sweeper shows when it assumes a role (`aws.accounts[].external_id`). Make one by: openssl rand -hex 16."
  type        = string
}

variable "role_name" {
  description = "Name of the read role. The act role is called the same with -act behind it."
  type        = string
  default     = "cloud-sweeper"

  validation {
    condition     = can(regex("^[[:alnum:]+=,.@_-]{1,50}$", var.role_name))
    error_message = "role_name must be 1 to 50 letters, digits or +=,.@_-: IAM allows 64, and -act-boundary is added."
  }
}

variable "regions" {
  description = "Regions that are read, and in which may be acted. Empty: every region that the account has enabled."
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
  description = "Makes the act role. null: nothing can be stopped in this account. allow_tag is the tag that an instance must carry before it may be stopped or started; any_instance = true asks for none. release_addresses = true lets Elastic IP addresses be released that carry that tag, delete_volumes = true EBS volumes be copied and deleted, end_members = true machines of Auto Scaling groups be ended whose group carries it, and terminate_jobs = true stuck jobs of AWS Batch be terminated that carry it; nothing undoes any of these."
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

variable "permissions_boundary_arn" {
  description = "Permissions boundary of your organisation's, in place of the module's own. null: the module's own."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary_arn == null || can(regex("^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/.+$", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn must be the ARN of an IAM policy."
  }
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
