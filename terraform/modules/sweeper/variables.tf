# ---- What is installed, and how large ----

variable "name" {
  description = "What everything is called. One sweeper of a name in an account and region."
  type        = string
  default     = "cloud-sweeper"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,22}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 24 lower-case letters, digits or hyphens, and begin with a letter: load balancers and databases allow no more."
  }
}

variable "size" {
  description = "small: one EC2 instance with SQLite on a volume of its own. highly_available: several Fargate tasks behind a load balancer, over PostgreSQL in two zones."
  type        = string

  validation {
    condition     = contains(["small", "highly_available"], var.size)
    error_message = "size must be small or highly_available."
  }
}

variable "architecture" {
  description = "The processor that the sweeper runs on: x86_64 or arm64 (Graviton). artifact must be for it; the release's image is for both."
  type        = string
  default     = "x86_64"

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "architecture must be x86_64 or arm64."
  }
}

variable "artifact" {
  description = "For size small: the sweeper's binary (Linux, for `architecture`) in a bucket of yours, and its SHA-256. The instance installs it if that is what it finds there."
  type = object({
    bucket = string
    key    = string
    sha256 = string
  })
  default = null

  validation {
    condition     = var.size != "small" || var.artifact != null
    error_message = "size small needs artifact: upload the sweeper's binary to a bucket, and give bucket, key and sha256 (sha256sum sweeper)."
  }
  validation {
    condition     = var.artifact == null || can(regex("^[0-9a-f]{64}$", var.artifact.sha256))
    error_message = "artifact.sha256 must be 64 hexadecimal digits in lower case: sha256sum sweeper."
  }
}

variable "image" {
  description = "For size highly_available: the sweeper's image, by its digest. Its entry point is the sweeper."
  type        = string
  default     = null

  validation {
    condition     = var.size != "highly_available" || var.image != null
    error_message = "size highly_available needs image: push the sweeper's image to a repository, and give it by its digest."
  }
  validation {
    condition     = var.image == null || can(regex("@sha256:[0-9a-f]{64}$", var.image))
    error_message = "image must end with its digest (…@sha256:…): a tag can be moved to another image."
  }
}

variable "files_image" {
  description = "For size highly_available: a small image with sh and base64 (busybox, say), by its digest. It writes configuration and secrets into the task's memory before the sweeper starts."
  type        = string
  default     = null

  validation {
    condition     = var.size != "highly_available" || can(regex("@sha256:[0-9a-f]{64}$", var.files_image))
    error_message = "size highly_available needs files_image, and by its digest (…@sha256:…), for example busybox from a repository of yours."
  }
}

variable "user_id" {
  description = "For size highly_available: the user and group id that the sweeper runs as in its container."
  type        = number
  default     = 65532

  validation {
    condition     = var.user_id > 0
    error_message = "user_id must not be root's."
  }
}

variable "instance_type" {
  description = "For size small: of that architecture. null: t3.small, or t4g.small. That was not measured under load: docs/journal has what sweeps and fleets of other sizes took."
  type        = string
  default     = null
}

variable "ami_id" {
  description = "For size small: an Amazon Linux 2023 image. null: the newest when it is first applied. The instance is not made anew because a newer one is out."
  type        = string
  default     = null
}

variable "data_volume_gib" {
  description = "For size small: the size of the volume that the database is on."
  type        = number
  default     = 20

  validation {
    condition     = var.data_volume_gib >= 10 && var.data_volume_gib <= 16384
    error_message = "data_volume_gib must be 10 to 16384."
  }
}

variable "tasks" {
  description = "For size highly_available: how many sweepers, and what each has (units of 1/1024 vCPU, MiB)."
  type = object({
    count  = optional(number, 2)
    cpu    = optional(number, 1024)
    memory = optional(number, 2048)
  })
  default = {}

  validation {
    condition     = var.tasks.count >= 2
    error_message = "tasks.count must be at least 2: one task is not highly available. Size small is one sweeper."
  }
}

variable "database" {
  description = "For size highly_available: PostgreSQL. ca_pem is the content of AWS's certificate bundle of the region (https://truststore.pki.rds.amazonaws.com/REGION/REGION-bundle.pem): with it the sweeper checks that it speaks to that database; without it the connection is encrypted alone."
  type = object({
    instance_class         = optional(string, "db.t4g.medium")
    engine_version         = optional(string, "16")
    allocated_gib          = optional(number, 50)
    max_allocated_gib      = optional(number, 500)
    backup_days            = optional(number, 14)
    password_rotation_days = optional(number, 90)
    ca_pem                 = optional(string)
  })
  default = {}

  validation {
    condition     = var.database.backup_days >= 7 && var.database.backup_days <= 35
    error_message = "database.backup_days must be 7 to 35."
  }
  validation {
    condition     = var.database.password_rotation_days >= 1 && var.database.password_rotation_days <= 90
    error_message = "database.password_rotation_days must be 1 to 90."
  }
  validation {
    condition     = var.database.ca_pem == null || can(regex("^\\s*-----BEGIN CERTIFICATE-----", var.database.ca_pem))
    error_message = "database.ca_pem must be certificates in PEM: file(\"eu-central-1-bundle.pem\")."
  }
  validation {
    condition     = var.database.max_allocated_gib > var.database.allocated_gib
    error_message = "database.max_allocated_gib must be more than allocated_gib: the disk grows by itself up to it."
  }
}

variable "deletion_protection" {
  description = "Whether load balancer and database refuse to be deleted. Switch it off in a change of its own before terraform destroy."
  type        = bool
  default     = true
}

# ---- Where it is ----

variable "network" {
  description = "An existing VPC. Private subnets must reach AWS's services (NAT or endpoints), and Slack where it is used; public subnets are needed with public = true alone. null: a VPC of its own."
  type = object({
    vpc_id             = string
    private_subnet_ids = list(string)
    public_subnet_ids  = optional(list(string), [])
  })
  default = null

  validation {
    condition     = var.network == null ? true : length(var.network.private_subnet_ids) >= (var.size == "small" ? 1 : 2)
    error_message = "network.private_subnet_ids must name one subnet for size small, and two in different zones for size highly_available."
  }
  validation {
    condition     = var.network == null || !var.public ? true : length(var.network.public_subnet_ids) >= (var.size == "small" ? 1 : 2)
    error_message = "public = true needs network.public_subnet_ids: one for size small, two in different zones for size highly_available."
  }
}

variable "vpc_cidr" {
  description = "For a VPC of its own: its addresses, a /24 or larger that nothing which is peered uses."
  type        = string
  default     = "10.64.0.0/24"

  validation {
    condition     = can(cidrsubnet(var.vpc_cidr, 3, 0)) && tonumber(split("/", var.vpc_cidr)[1]) <= 24
    error_message = "vpc_cidr must be a block like 10.64.0.0/24, at most /24."
  }
}

variable "client_cidrs" {
  description = "Networks from which agents and people reach the sweeper."
  type        = list(string)

  validation {
    condition     = alltrue([for cidr in var.client_cidrs : can(cidrhost(cidr, 0))])
    error_message = "client_cidrs must be blocks like 10.0.0.0/8."
  }
  validation {
    condition     = !contains(var.client_cidrs, "0.0.0.0/0") && !contains(var.client_cidrs, "::/0")
    error_message = "client_cidrs must not be the whole Internet. Buttons in Slack need no open port: use Socket Mode (docs/approvals.md)."
  }
}

variable "public" {
  description = "Whether it has a public address. Only client_cidrs reach it all the same."
  type        = bool
  default     = false
}

variable "certificate_arn" {
  description = "For size highly_available: an ACM certificate for the load balancer. null: one is made for `domain`."
  type        = string
  default     = null

  validation {
    condition     = var.size != "highly_available" || var.certificate_arn != null || var.domain != null
    error_message = "size highly_available needs TLS: give certificate_arn, or domain with a Route 53 zone, for which a certificate is made."
  }
}

variable "domain" {
  description = "Name under which the sweeper is reached, and the public Route 53 zone that it is in. A record is made there, and for size highly_available a certificate, unless certificate_arn is given."
  type = object({
    name    = string
    zone_id = string
  })
  default = null
}

variable "tls" {
  description = "For size small: secrets of Secrets Manager with the certificate chain and the key in PEM. null: plain HTTP, which is for networks that you trust alone."
  type = object({
    certificate_secret_arn = string
    key_secret_arn         = string
  })
  default = null
}

# ---- What it reads ----

variable "own_account" {
  description = "Whether the account that it is in is read."
  type        = bool
  default     = true
}

variable "accounts" {
  description = "Other accounts: outputs `account` of member-account, or `accounts` of organisation."
  type = list(object({
    role_arn    = string
    external_id = string
    regions     = optional(list(string), [])
  }))
  default = []

  validation {
    condition     = alltrue([for account in var.accounts : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$", account.role_arn))])
    error_message = "accounts[].role_arn must be the ARN of a role."
  }
}

variable "regions" {
  description = "Regions that are read. Empty: every region that an account has enabled."
  type        = list(string)
  default     = []
}

variable "cloudwatch" {
  description = "Whether CloudWatch is asked how busy instances without an agent are. AWS bills it."
  type        = bool
  default     = false
}

variable "cloudtrail" {
  description = "Whether CloudTrail is asked who started machines."
  type        = bool
  default     = false
}

variable "google" {
  description = "For size small: Google Cloud, by the gcp module's output `google`. Fargate has no metadata service of EC2's, from which Google's library takes the session that it shows."
  type = object({
    projects    = list(string)
    credentials = string
    monitoring  = optional(bool, false)
    act         = optional(object({ projects = list(string), credentials = string }))
  })
  default = null

  validation {
    condition     = var.google == null || var.size == "small"
    error_message = "google works with size small alone: Google's library takes its AWS session from EC2's metadata service, which Fargate does not have."
  }
}

variable "act" {
  description = "Where approved plans are carried out (docs/approvals.md): scopes like \"123456789012:eu-central-1\", and the act role of each account (output `act_role` of member-account). Scopes like \"omics-prod-1:europe-west3-a\" are of Google Cloud, where who acts comes with `google`. `end_members`: idle machines of Auto Scaling groups may be ended (`act.end_members` of member-account as well); `terminate_jobs`: stuck jobs of AWS Batch may be terminated (likewise). Empty: dry runs alone."
  type = object({
    scopes         = optional(list(string), [])
    end_members    = optional(bool, false)
    terminate_jobs = optional(bool, false)
    roles = optional(list(object({
      role_arn    = string
      external_id = string
    })), [])
  })
  default = {}

  validation {
    condition     = alltrue([for scope in var.act.scopes : can(regex("^([0-9]{12}:[a-z0-9-]+|[a-z][a-z0-9-]{4,28}[a-z0-9]:[a-z0-9-]+-[a-z])$", scope))])
    error_message = "act.scopes must be like \"123456789012:eu-central-1\" or \"omics-prod-1:europe-west3-a\"."
  }
  validation {
    condition     = alltrue([for scope in var.act.scopes : anytrue([for role in var.act.roles : strcontains(role.role_arn, "::${split(":", scope)[0]}:")]) if can(regex("^[0-9]", scope))])
    error_message = "act.scopes names an account without a role in act.roles: give member-account `act`, and pass its output act_role."
  }
  validation {
    condition     = alltrue([for scope in var.act.scopes : contains(try(var.google.act.projects, []), split(":", scope)[0]) if can(regex("^[a-z]", scope))])
    error_message = "act.scopes names a project where nobody acts: give the gcp module `act_projects`."
  }
}

variable "approval_policy" {
  description = "Who may approve what: the content of a file like packaging/policy.example.toml. null: nobody may approve anything."
  type        = string
  default     = null
}

# ---- Whom it tells ----

variable "slack" {
  description = "The channel, the channels of teams (docs/operations.md, *Whose channel*), and the secrets of Secrets Manager that hold the bot token and, for buttons, the app-level token (Socket Mode) or the signing secret."
  type = object({
    channel                   = string
    token_secret_arn          = string
    app_token_secret_arn      = optional(string)
    signing_secret_secret_arn = optional(string)
    teams = optional(list(object({
      name      = string
      channel   = string
      tags      = optional(map(string))
      owners    = optional(list(string))
      launchers = optional(list(string))
      accounts  = optional(list(string))
      hours = optional(object({
        days = list(string)
        from = string
        to   = string
        zone = string
      }))
      channel_outside_hours = optional(string)
    })), [])
  })
  default = null

  validation {
    condition     = var.slack == null ? true : can(regex("^arn:aws[a-z-]*:secretsmanager:", var.slack.token_secret_arn))
    error_message = "slack.token_secret_arn must be the ARN of a secret: aws secretsmanager create-secret --name slack-token --secret-string file://token."
  }

  # What the sweeper refuses at its start, as far as it can be told here.
  validation {
    condition     = var.slack == null ? true : length(distinct(var.slack.teams[*].name)) == length(var.slack.teams)
    error_message = "slack.teams must have a name of its own for each team."
  }

  validation {
    condition     = var.slack == null ? true : alltrue([for team in var.slack.teams : (team.hours == null) == (team.channel_outside_hours == null)])
    error_message = "A team of slack.teams has hours and channel_outside_hours, or neither: somebody must be told at night, too."
  }
}

variable "email" {
  description = "The mail server, and the secret of Secrets Manager that holds its password."
  type = object({
    host                = string
    port                = optional(number, 587)
    from                = string
    to                  = list(string)
    username            = optional(string)
    password_secret_arn = optional(string)
  })
  default = null
}

variable "secret_kms_key_arns" {
  description = "KMS keys of your own that those secrets are encrypted by. Empty: AWS's own key."
  type        = list(string)
  default     = []
}

variable "settings" {
  description = "More settings of sweeper.example.toml, by their full name: { \"verdict.idle_after\" = \"1h\" }. They win over what this module sets."
  type        = any
  default     = {}

  validation {
    condition     = can(keys(var.settings)) && alltrue([for key in keys(var.settings) : can(regex("^([a-z]+\\.)?[a-z_0-9]+$", key))])
    error_message = "settings must be a map whose keys are named section.key, for example \"verdict.idle_after\"."
  }
  validation {
    condition     = !anytrue([for key in keys(var.settings) : contains(["slack.token", "slack.signing_secret", "slack.app_token", "email.password"], key)])
    error_message = "settings must hold no secret: they are kept in Terraform's state. Use slack and email with secrets of Secrets Manager."
  }
}

# ---- How it is kept ----

variable "kms_key_arn" {
  description = "KMS key for the volume, database, logs, topic and secrets. null: one is made. A key of your own must let CloudWatch Logs, and alarms through SNS, use it."
  type        = string
  default     = null
}

variable "log_retention_days" {
  description = "How long logs are kept."
  type        = number
  default     = 365

  validation {
    condition     = contains([30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days must be one of the values that CloudWatch Logs has, 30 or more: 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, …"
  }
}

variable "access_log_bucket" {
  description = "For size highly_available: a bucket for the load balancer's access logs, whose policy lets load balancers write. null: none are kept."
  type        = string
  default     = null
}

variable "alarm_emails" {
  description = "Who is told of alarms. Each must confirm a mail of AWS's first."
  type        = list(string)
  default     = []
}

variable "alarm_topic_arn" {
  description = "A topic of yours for alarms. null: one is made."
  type        = string
  default     = null
}

variable "alarm_without_heartbeats" {
  description = "For size highly_available: an alarm if nothing reaches the load balancer for 15 minutes. Switch it on once agents are installed."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
