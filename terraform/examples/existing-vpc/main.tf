# A sweeper where the machines are that it watches: one instance in an existing VPC, and agents on every instance there that is tagged for one.

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
  description = "Region that the VPC is in."
  type        = string
}

variable "network" {
  description = "The VPC, and private subnets of it that reach AWS's services and Slack."
  type = object({
    vpc_id             = string
    private_subnet_ids = list(string)
  })
}

variable "client_cidrs" {
  description = "Networks from which agents reach it: the VPC's own."
  type        = list(string)
}

variable "bucket" {
  description = "A bucket of yours with the binaries: sweeper, node-agent and, for machines with NVIDIA GPUs, node-agent-gpu."
  type        = string
}

variable "sha256" {
  description = "Their SHA-256: sha256sum sweeper node-agent node-agent-arm node-agent-gpu"
  type = object({
    sweeper        = string
    node_agent     = string
    node_agent_arm = optional(string)
    node_agent_gpu = optional(string)
  })
}

variable "slack" {
  description = "The channel, and the secret that holds the bot token."
  type = object({
    channel          = string
    token_secret_arn = string
  })
}

module "sweeper" {
  source = "../../modules/sweeper"

  size         = "small"
  artifact     = { bucket = var.bucket, key = "sweeper", sha256 = var.sha256.sweeper }
  network      = var.network
  client_cidrs = var.client_cidrs
  slack        = var.slack
}

module "agents" {
  source = "../../modules/node-agent"

  sweeper_url           = module.sweeper.url
  join_token_secret_arn = module.sweeper.join_token_secret_arn
  kms_key_arn           = module.sweeper.kms_key_arn
  artifact              = { bucket = var.bucket, key = "node-agent", sha256 = var.sha256.node_agent }
  arm_artifact          = var.sha256.node_agent_arm == null ? null : { bucket = var.bucket, key = "node-agent-arm", sha256 = var.sha256.node_agent_arm }
  gpu_artifact          = var.sha256.node_agent_gpu == null ? null : { bucket = var.bucket, key = "node-agent-gpu", sha256 = var.sha256.node_agent_gpu }
  targets               = [{ key = "tag:cloud-sweeper:agent", values = ["yes"] }]
}

output "url" {
  description = "The agents' sweeper_url."
  value       = module.sweeper.url
}

output "instance_policy" {
  description = "What the instances' roles need, so that the agent can be installed on them."
  value       = module.agents.instance_policy
}
