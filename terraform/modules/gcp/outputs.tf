output "google" {
  description = "For the sweeper module's `google`: the projects, and where its credentials come from. It holds no secret."
  value = {
    projects   = sort(var.projects)
    monitoring = var.monitoring
    credentials = jsonencode({
      type                              = "external_account"
      audience                          = local.provider
      subject_token_type                = "urn:ietf:params:aws:token-type:aws4_request"
      service_account_impersonation_url = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${google_service_account.sweeper.email}:generateAccessToken"
      token_url                         = "https://sts.googleapis.com/v1/token"
      credential_source = {
        environment_id                 = "aws1"
        region_url                     = "http://169.254.169.254/latest/meta-data/placement/availability-zone"
        url                            = "http://169.254.169.254/latest/meta-data/iam/security-credentials"
        regional_cred_verification_url = "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15"
        imdsv2_session_token_url       = "http://169.254.169.254/latest/api/token"
      }
    })
  }
}

output "permissions" {
  description = "The permissions of the role, for review."
  value       = local.permissions
}

output "service_account_email" {
  description = "The service account that reads."
  value       = google_service_account.sweeper.email
}
