# A sweeper for a team: one instance in a VPC of its own, which reads this account. Four variables; everything else has a default.

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

variable "region" {
  description = "Region that the sweeper is in. It reads every region that the account has enabled."
  type        = string
}

variable "artifact" {
  description = "The sweeper's binary in a bucket of yours, and its SHA-256 (sha256sum sweeper)."
  type = object({
    bucket = string
    key    = string
    sha256 = string
  })
}

variable "slack" {
  description = "The channel, and the secret that holds the bot token: aws secretsmanager create-secret --name slack-token --secret-string file://token"
  type = object({
    channel          = string
    token_secret_arn = string
  })
}

variable "client_cidrs" {
  description = "Networks from which agents reach it. They need a route to its VPC, by peering or a transit gateway; examples/existing-vpc puts it where they are."
  type        = list(string)
}

module "sweeper" {
  source = "../../modules/sweeper"

  size         = "small"
  artifact     = var.artifact
  slack        = var.slack
  client_cidrs = var.client_cidrs
}

output "sweeper" {
  description = "What the next steps need: the agents' sweeper_url, the secret with their join token, and the instance for a session."
  value = {
    url                   = module.sweeper.url
    join_token_secret_arn = module.sweeper.join_token_secret_arn
    instance_id           = module.sweeper.instance_id
    role_arn              = module.sweeper.role_arn
  }
}
