variable "name" {
  description = "What everything is called."
  type        = string
  default     = "cloud-sweeper-node-agent"

  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{2,39}$", var.name))
    error_message = "name must be 3 to 40 letters, digits or hyphens, and begin with a letter."
  }
}

variable "sweeper_url" {
  description = "Address of the sweeper: its module's output `url`."
  type        = string

  validation {
    condition     = can(regex("^https?://[^/ ]+$", var.sweeper_url))
    error_message = "sweeper_url must be http:// or https:// and a host, without a path: https://sweeper.example.com."
  }
}

variable "join_token_secret_arn" {
  description = "Secret with the agents' join token: the sweeper module's output of that name."
  type        = string

  validation {
    condition     = can(regex("^arn:aws[a-z-]*:secretsmanager:", var.join_token_secret_arn))
    error_message = "join_token_secret_arn must be the ARN of a secret of Secrets Manager."
  }
}

variable "kms_key_arn" {
  description = "The key that this secret is encrypted by: the sweeper module's output of that name. null: AWS's own key."
  type        = string
  default     = null
}

variable "artifact" {
  description = "The agent's binary for Linux on x86-64, in a bucket of yours, and its SHA-256. It is installed if that is what is found there."
  type = object({
    bucket = string
    key    = string
    sha256 = string
  })

  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.artifact.sha256))
    error_message = "artifact.sha256 must be 64 hexadecimal digits in lower case: sha256sum node-agent."
  }
  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.artifact.bucket)) && can(regex("^[A-Za-z0-9/_.+=-]+$", var.artifact.key))
    error_message = "artifact.bucket must be a bucket's name, and artifact.key hold letters, digits and /_.+=- alone: both stand in a script."
  }
}

variable "arm_artifact" {
  description = "The agent's binary for machines of 64-bit Arm (Graviton), likewise. null: such a machine says that it has none, and gets none."
  type = object({
    bucket = string
    key    = string
    sha256 = string
  })
  default = null

  validation {
    condition     = var.arm_artifact == null ? true : can(regex("^[0-9a-f]{64}$", var.arm_artifact.sha256)) && can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.arm_artifact.bucket)) && can(regex("^[A-Za-z0-9/_.+=-]+$", var.arm_artifact.key))
    error_message = "arm_artifact.sha256 must be 64 hexadecimal digits in lower case (sha256sum node-agent), its bucket a bucket's name, and its key hold letters, digits and /_.+=- alone."
  }
}

variable "gpu_artifact" {
  description = "The helper that reads NVIDIA's GPUs on x86-64, likewise. null: machines with GPUs stay unknown."
  type = object({
    bucket = string
    key    = string
    sha256 = string
  })
  default = null

  validation {
    condition     = var.gpu_artifact == null ? true : can(regex("^[0-9a-f]{64}$", var.gpu_artifact.sha256)) && can(regex("^[A-Za-z0-9/_.+=-]+$", var.gpu_artifact.key))
    error_message = "gpu_artifact.sha256 must be 64 hexadecimal digits in lower case (sha256sum node-agent-gpu), and its key hold letters, digits and /_.+=- alone."
  }
}

variable "targets" {
  description = "Existing instances that are given the agent, by Systems Manager: [{ key = \"tag:cloud-sweeper:agent\", values = [\"yes\"] }], or [{ key = \"InstanceIds\", values = [\"*\"] }] for all that it manages. Empty: none."
  type = list(object({
    key    = string
    values = list(string)
  }))
  default = []

  validation {
    condition     = length(var.targets) <= 5 && alltrue([for target in var.targets : can(regex("^(InstanceIds|tag:.+|resource-groups:Name)$", target.key))])
    error_message = "targets may be five at most; each key is InstanceIds, tag:KEY or resource-groups:Name."
  }
}

variable "schedule" {
  description = "How often the association is applied again: an instance whose agent is the given one is left as it is."
  type        = string
  default     = "rate(1 day)"

  validation {
    condition     = can(regex("^(rate|cron)\\(.+\\)$", var.schedule))
    error_message = "schedule must be an expression of Systems Manager: rate(1 day) or cron(0 3 * * ? *)."
  }
}

variable "max_concurrency" {
  description = "On so many instances at once, a number or a percentage."
  type        = string
  default     = "10%"
}

variable "max_errors" {
  description = "After so many failures it stops, a number or a percentage."
  type        = string
  default     = "5%"
}

variable "batch_launch_template" {
  description = "Whether a launch template for AWS Batch's compute environments is made, whose machines start the agent beside their registration and not before it."
  type        = bool
  default     = false
}

variable "ecs" {
  description = "A daemon service for the EC2 machines of an ECS cluster: the agent's image by its digest. Prefer the launch template: ECS can give a container no CAP_BPF, so that this one begins with CAP_SYS_ADMIN."
  type = object({
    cluster_arn        = string
    image              = string
    log_retention_days = optional(number, 30)
  })
  default = null

  validation {
    condition     = var.ecs == null ? true : can(regex("@sha256:[0-9a-f]{64}$", var.ecs.image))
    error_message = "ecs.image must end with its digest (…@sha256:…): a tag can be moved to another image."
  }
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
