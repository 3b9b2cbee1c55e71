variable "name" {
  description = "Name of the budget and its topic."
  type        = string
  default     = "cloud-sweeper"

  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9_-]{0,60}$", var.name))
    error_message = "name must be 1 to 61 letters, digits, hyphens or underscores."
  }
}

variable "monthly_usd" {
  description = "What the sweeper itself may cost in a month, in US dollars."
  type        = number

  validation {
    condition     = var.monthly_usd > 0
    error_message = "monthly_usd must be more than 0."
  }
}

variable "cost_allocation" {
  description = "The tag that everything of the sweeper carries. It must be activated as a cost allocation tag in the payer's account (Billing, Cost allocation tags), a day before it counts."
  type = object({
    key   = string
    value = string
  })
}

variable "emails" {
  description = "Who is told."
  type        = list(string)

  validation {
    condition     = length(var.emails) > 0 && length(var.emails) <= 10 && alltrue([for email in var.emails : can(regex("^[^@ ]+@[^@ ]+$", email))])
    error_message = "emails must be 1 to 10 addresses: a budget takes no more."
  }
}

variable "cap" {
  description = "The sweeper's role, by its name. Above the budget, AWS then denies it what is billed by the call (cloudwatch:GetMetricData), until the month is over. null: it is told and nothing is denied. Fixed costs (instance, database, NAT gateway) nothing caps."
  type = object({
    role_name = string
  })
  default = null
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
