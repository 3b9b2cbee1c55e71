output "google" {
  description = "For the sweeper module's `google`: the projects, and where its credentials come from. It holds no secret."
  value = {
    projects    = sort(var.projects)
    monitoring  = var.monitoring
    credentials = jsonencode(merge(local.federated, { service_account_impersonation_url = "${local.takes_place_of}/${google_service_account.sweeper.email}:generateAccessToken" }))
    act = length(var.act_projects) == 0 ? null : {
      projects    = sort(var.act_projects)
      credentials = jsonencode(merge(local.federated, { service_account_impersonation_url = "${local.takes_place_of}/${google_service_account.act[0].email}:generateAccessToken" }))
    }
  }
}

locals {
  takes_place_of = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts"
  federated = {
    type               = "external_account"
    audience           = local.provider
    subject_token_type = "urn:ietf:params:aws:token-type:aws4_request"
    token_url          = "https://sts.googleapis.com/v1/token"
    credential_source = {
      environment_id                 = "aws1"
      region_url                     = "http://169.254.169.254/latest/meta-data/placement/availability-zone"
      url                            = "http://169.254.169.254/latest/meta-data/iam/security-credentials"
      regional_cred_verification_url = "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"
      imdsv2_session_token_url       = "http://169.254.169.254/latest/api/token"
    }
  }
}

output "permissions" {
  description = "The permissions of the role that reads, for review; what it has where something may be done; and those of the role that acts."
  value = {
    read          = local.permissions
    before_acting = local.before_acting
    act           = local.act_permissions
  }
}

output "service_account_email" {
  description = "The service account that reads."
  value       = google_service_account.sweeper.email
}
