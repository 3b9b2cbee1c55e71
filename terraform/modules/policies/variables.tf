variable "partition" {
  description = "Partition of AWS: aws, aws-cn or aws-us-gov."
  type        = string
  default     = "aws"

  validation {
    condition     = contains(["aws", "aws-cn", "aws-us-gov"], var.partition)
    error_message = "partition must be aws, aws-cn or aws-us-gov."
  }
}

variable "account_id" {
  description = "Account whose instances may be acted on. \"*\" is the account that the role is in, whichever that is: IAM lets no role reach another account's instances by its own policy."
  type        = string
  default     = "*"

  validation {
    condition     = can(regex("^([0-9]{12}|\\*)$", var.account_id))
    error_message = "account_id must be twelve digits, or \"*\"."
  }
}

variable "regions" {
  description = "Regions that are read, and in which may be acted. Empty: every region that the account has enabled."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for region in var.regions : can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]$", region))])
    error_message = "regions must be names of regions, for example [\"eu-central-1\"]."
  }
}

variable "cloudwatch" {
  description = "Whether `aws.cloudwatch` is on: cloudwatch:GetMetricData is then read, which AWS bills."
  type        = bool
  default     = false
}

variable "cloudtrail" {
  description = "Whether `aws.cloudtrail` is on: cloudtrail:LookupEvents is then read."
  type        = bool
  default     = false
}

variable "before_acting" {
  description = "Whether approved plans are carried out here: what rests on a machine is then read as well (target groups, load balancers, routes)."
  type        = bool
  default     = false
}

variable "allow_tag" {
  description = "The tag that an instance must carry before it may be stopped or started. null: any instance, as docs/approvals.md has it."
  type = object({
    key   = string
    value = string
  })
  default = {
    key   = "cloud-sweeper:act"
    value = "allow"
  }

  validation {
    condition     = var.allow_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,128}$", var.allow_tag.key))
    error_message = "allow_tag.key must be a tag's key: 1 to 128 letters, digits, spaces or _.:/=+@-."
  }
  validation {
    condition     = var.allow_tag == null || !can(regex("^cloud-sweeper:stopped-", var.allow_tag.key))
    error_message = "allow_tag.key must not begin with cloud-sweeper:stopped-, because the act role may set those tags: it could allow itself any instance."
  }
  validation {
    condition     = var.allow_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,256}$", var.allow_tag.value))
    error_message = "allow_tag.value must be 1 to 256 letters, digits, spaces or _.:/=+@-: IAM takes * and ? for wildcards."
  }
}

variable "release_tag" {
  description = "The tag that an Elastic IP address must carry before it may be released, which nothing undoes. null: none is ever released."
  type = object({
    key   = string
    value = string
  })
  default = null

  validation {
    condition     = var.release_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,128}$", var.release_tag.key))
    error_message = "release_tag.key must be a tag's key: 1 to 128 letters, digits, spaces or _.:/=+@-."
  }
  validation {
    condition     = var.release_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,256}$", var.release_tag.value))
    error_message = "release_tag.value must be 1 to 256 letters, digits, spaces or _.:/=+@-: IAM takes * and ? for wildcards."
  }
}

variable "delete_tag" {
  description = "The tag that an EBS volume must carry before a snapshot of it is taken and it may be deleted, which nothing undoes. null: none is ever deleted."
  type = object({
    key   = string
    value = string
  })
  default = null

  validation {
    condition     = var.delete_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,128}$", var.delete_tag.key))
    error_message = "delete_tag.key must be a tag's key: 1 to 128 letters, digits, spaces or _.:/=+@-."
  }
  validation {
    condition     = var.delete_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,256}$", var.delete_tag.value))
    error_message = "delete_tag.value must be 1 to 256 letters, digits, spaces or _.:/=+@-: IAM takes * and ? for wildcards."
  }
}

variable "end_tag" {
  description = "The tag that an Auto Scaling group must carry before one of its machines may be ended, which nothing undoes. null: none is ever ended."
  type = object({
    key   = string
    value = string
  })
  default = null

  validation {
    condition     = var.end_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,128}$", var.end_tag.key))
    error_message = "end_tag.key must be a tag's key: 1 to 128 letters, digits, spaces or _.:/=+@-."
  }
  validation {
    condition     = var.end_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,256}$", var.end_tag.value))
    error_message = "end_tag.value must be 1 to 256 letters, digits, spaces or _.:/=+@-: IAM takes * and ? for wildcards."
  }
}

variable "terminate_tag" {
  description = "The tag that a job of AWS Batch must carry before it may be terminated, which nothing undoes. null: none ever is."
  type = object({
    key   = string
    value = string
  })
  default = null

  validation {
    condition     = var.terminate_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,128}$", var.terminate_tag.key))
    error_message = "terminate_tag.key must be a tag's key: 1 to 128 letters, digits, spaces or _.:/=+@-."
  }
  validation {
    condition     = var.terminate_tag == null || can(regex("^[[:alnum:] _.:/=+@-]{1,256}$", var.terminate_tag.value))
    error_message = "terminate_tag.value must be 1 to 256 letters, digits, spaces or _.:/=+@-: IAM takes * and ? for wildcards."
  }
}

variable "sweeper_principal_arn" {
  description = "ARN of the role that the sweeper runs as."
  type        = string

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$", var.sweeper_principal_arn))
    error_message = "sweeper_principal_arn must be the ARN of one IAM role, for example arn:aws:iam::999988887777:role/cloud-sweeper. The sweeper module's output role_arn is one."
  }
}

variable "external_id" {
  description = "Text of your own that the sweeper shows when it assumes a role."
  type        = string

  validation {
    condition     = length(var.external_id) >= 8 && length(var.external_id) <= 1224 && can(regex("^[[:alnum:]+=,.@:/_-]+$", var.external_id))
    error_message = "external_id must be 8 to 1224 letters, digits or +=,.@:/_-. Choose one for this installation alone, for example by: openssl rand -hex 16."
  }
}
