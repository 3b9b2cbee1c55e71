variable "project_id" {
  description = "Project that the sweeper's identity is kept in: its service account and the pool that trusts AWS. It need not be read itself."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project_id))
    error_message = "project_id must be the id of a project (not its number): 6 to 30 lower-case letters, digits or hyphens."
  }
}

variable "project_number" {
  description = "The number of that project: gcloud projects describe PROJECT --format 'value(projectNumber)'."
  type        = string

  validation {
    condition     = can(regex("^[0-9]+$", var.project_number))
    error_message = "project_number must be digits alone."
  }
}

variable "projects" {
  description = "Ids of the projects that are read."
  type        = set(string)

  validation {
    condition     = length(var.projects) > 0 && alltrue([for id in var.projects : can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", id))])
    error_message = "projects must name at least one project by its id."
  }
}

variable "act_projects" {
  description = "Ids of the projects, of those that are read, where a service account of its own may stop and start machines. Empty: nothing is done anywhere. It is done where the sweeper's `act.scopes` says so, and nowhere else."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for id in var.act_projects : contains(var.projects, id)])
    error_message = "act_projects names a project that is not in projects."
  }
}

variable "monitoring" {
  description = "Whether `gcp.monitoring` is on: time series of Cloud Monitoring are then read, which Google may bill."
  type        = bool
  default     = false
}

variable "aws" {
  description = "The role in AWS that the sweeper runs as (output role_arn of its module). Its sessions alone take the service account's place: no key of it exists."
  type = object({
    account_id = string
    role_name  = string
  })

  validation {
    condition     = can(regex("^[0-9]{12}$", var.aws.account_id)) && can(regex("^[A-Za-z0-9+=,.@_-]{1,64}$", var.aws.role_name))
    error_message = "aws.account_id must be twelve digits, and aws.role_name the name of a role without its path."
  }
}

variable "name" {
  description = "Name of the service account and the pool."
  type        = string
  default     = "cloud-sweeper"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,24}[a-z0-9]$", var.name))
    error_message = "name must be 6 to 26 lower-case letters, digits or hyphens."
  }
}
