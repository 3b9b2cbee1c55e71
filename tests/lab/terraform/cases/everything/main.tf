# What the examples leave out, switched on at once, so that every policy is rendered and every resource applied.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 6.0, < 7.0"
    }
    google = {
      source  = "hashicorp/google"
      version = ">= 6.0, < 7.0"
    }
  }
}

provider "aws" {
  region = "eu-central-1"
}

provider "google" {
  project = "omics-finops"
}

locals {
  secret  = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:%s-AbCdEf"
  digests = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
  sha256  = "0000000000000000000000000000000000000000000000000000000000000000"
  teams = [
    { name = "genomics", channel = "#genomics", tags = { team = "genomics" }, hours = { days = ["mon", "fri"], from = "08:00", to = "18:00", zone = "Europe/Berlin" }, channel_outside_hours = "#on-call" },
    { name = "research", channel = "C0123456789", owners = ["ada"], launchers = ["ci/*"], accounts = ["123456789012"] },
  ]
}

module "sweeper" {
  source = "../../../../../terraform/modules/sweeper"

  size                = "small"
  artifact            = { bucket = "binaries-of-ours", key = "cloud-sweeper/sweeper", sha256 = local.sha256 }
  client_cidrs        = ["10.0.0.0/8", "192.168.0.0/16"]
  public              = true
  domain              = { name = "sweeper.example.com", zone_id = "Z0123456789" }
  tls                 = { certificate_secret_arn = format(local.secret, "crt"), key_secret_arn = format(local.secret, "key") }
  slack               = { channel = "#cloud-costs", token_secret_arn = format(local.secret, "slack"), app_token_secret_arn = format(local.secret, "app"), teams = local.teams }
  email               = { host = "smtp.example.com", from = "Cloud Sweeper <sweeper@example.com>", to = ["ops@example.com"], username = "sweeper", password_secret_arn = format(local.secret, "mail") }
  google              = module.google.google
  cloudwatch          = true
  cloudtrail          = true
  accounts            = [module.member.account]
  act                 = { scopes = ["123456789012:eu-central-1", "omics-prod-1:europe-west3-a"], roles = [module.member.act_role] }
  approval_policy     = file("${path.module}/../../../../../packaging/policy.example.toml")
  alarm_emails        = ["ops@example.com"]
  secret_kms_key_arns = ["arn:aws:kms:eu-central-1:123456789012:key/00000000-0000-4000-8000-000000000000"]
  settings            = { "verdict.idle_after" = "1h", "sweep.timezone" = "Europe/Berlin", "onprem.hourly_usd" = { default = "0.25" } }
}

# Without any bound by region or tag: the widest that there is.
module "widest" {
  source = "../../../../../terraform/modules/member-account"

  role_name             = "cloud-sweeper-widest"
  sweeper_principal_arn = module.sweeper.role_arn
  external_id           = "an-id-of-your-own"
  cloudwatch            = true
  cloudtrail            = true
  act                   = { any_instance = true, release_addresses = true, delete_volumes = true, end_members = true, terminate_jobs = true }
}

module "member" {
  source = "../../../../../terraform/modules/member-account"

  sweeper_principal_arn = module.sweeper.role_arn
  external_id           = "an-id-of-your-own"
  act                   = {}
}

module "agents" {
  source = "../../../../../terraform/modules/node-agent"

  sweeper_url           = module.sweeper.url
  join_token_secret_arn = module.sweeper.join_token_secret_arn
  kms_key_arn           = module.sweeper.kms_key_arn
  artifact              = { bucket = "binaries-of-ours", key = "node-agent", sha256 = local.sha256 }
  gpu_artifact          = { bucket = "binaries-of-ours", key = "node-agent-gpu", sha256 = local.sha256 }
  targets               = [{ key = "InstanceIds", values = ["*"] }]
  batch_launch_template = true
  ecs = {
    cluster_arn = "arn:aws:ecs:eu-central-1:123456789012:cluster/batch"
    image       = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/cloud-sweeper/node-agent@${local.digests}"
  }
}

module "google" {
  source = "../../../../../terraform/modules/gcp"

  project_id     = "omics-finops"
  project_number = "123456789012"
  projects       = ["omics-prod-1"]
  act_projects   = ["omics-prod-1"]
  monitoring     = true
  aws            = { account_id = "123456789012", role_name = "cloud-sweeper-sweeper" }
}

module "budget" {
  source = "../../../../../terraform/modules/budget-guard"

  monthly_usd     = 100
  cost_allocation = { key = "application", value = "cloud-sweeper" }
  emails          = ["finops@example.com"]
  cap             = { role_name = "cloud-sweeper-sweeper" }
}

# What tests/lab/terraform/policies.py and files.py hold to the documentation and to the programs that read them.
output "checked" {
  value = {
    widest        = module.widest.policies
    member        = module.member.policies
    sweeper       = module.sweeper.policy
    google        = module.google.permissions
    configuration = module.sweeper.configuration
    user_data     = module.agents.user_data
    user_data_ecs = module.agents.user_data_ecs
  }
}
