# Two sweepers over PostgreSQL in a VPC of their own, with TLS, a second account that is read, and acting in it switched on. Agents by a State Manager association.

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

  default_tags {
    tags = { application = "cloud-sweeper" }
  }
}

# The other account. Here it is reached by a role that may make IAM roles in it.
provider "aws" {
  alias  = "research"
  region = var.region

  assume_role {
    role_arn = var.research_administration_role_arn
  }
}

variable "region" {
  description = "Region that the sweeper is in."
  type        = string
}

variable "images" {
  description = "The sweeper's image and a busybox, each by its digest."
  type = object({
    sweeper = string
    files   = string
  })
}

variable "domain" {
  description = "Name under which the sweeper is reached, and its Route 53 zone."
  type = object({
    name    = string
    zone_id = string
  })
}

variable "slack" {
  description = "The channel, and the secrets with bot token and app-level token (buttons over Socket Mode)."
  type = object({
    channel              = string
    token_secret_arn     = string
    app_token_secret_arn = string
  })
}

variable "client_cidrs" {
  description = "Networks from which agents and people reach it."
  type        = list(string)
}

variable "external_id" {
  description = "A text of your own, which the sweeper shows where it assumes a role: openssl rand -hex 16"
  type        = string
}

variable "research_account_id" {
  description = "The other account."
  type        = string
}

variable "research_administration_role_arn" {
  description = "A role in the other account by which Terraform makes the sweeper's roles there."
  type        = string
}

variable "alarm_emails" {
  description = "Who is told of alarms."
  type        = list(string)
}

variable "database_ca_pem" {
  description = "AWS's certificate bundle of the region: file(\"eu-central-1-bundle.pem\")."
  type        = string
}

module "sweeper" {
  source = "../../modules/sweeper"

  size         = "highly_available"
  image        = var.images.sweeper
  files_image  = var.images.files
  domain       = var.domain
  client_cidrs = var.client_cidrs
  slack        = var.slack
  database     = { ca_pem = var.database_ca_pem }
  alarm_emails = var.alarm_emails

  accounts = [module.research.account]
  act = {
    scopes = ["${var.research_account_id}:${var.region}"]
    roles  = [module.research.act_role]
  }
  approval_policy = file("${path.module}/policy.toml")
}

module "research" {
  source    = "../../modules/member-account"
  providers = { aws = aws.research }

  sweeper_principal_arn = module.sweeper.role_arn
  external_id           = var.external_id
  regions               = [var.region]
  act                   = {}
}

module "budget" {
  source = "../../modules/budget-guard"

  name            = "cloud-sweeper"
  monthly_usd     = 400
  emails          = var.alarm_emails
  cost_allocation = { key = "application", value = "cloud-sweeper" }
}

output "url" {
  description = "The agents' sweeper_url."
  value       = module.sweeper.url
}

output "join_token_secret_arn" {
  description = "The secret with the agents' join token. Put a value into it, and into the next, before the service can start."
  value       = module.sweeper.join_token_secret_arn
}

output "operator_token_secret_arn" {
  description = "The secret with the operator token."
  value       = module.sweeper.operator_token_secret_arn
}

output "administration" {
  description = "What `aws ecs run-task` needs to start a sweeper for its commands."
  value       = module.sweeper.administration
}
