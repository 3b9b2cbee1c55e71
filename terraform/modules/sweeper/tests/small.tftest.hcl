variables {
  size         = "small"
  artifact     = { bucket = "binaries-of-ours", key = "cloud-sweeper/sweeper", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }
  client_cidrs = ["10.0.0.0/8"]
}

run "is_private_and_encrypted" {
  assert {
    condition     = aws_instance.sweeper[0].metadata_options[0].http_tokens == "required" && aws_instance.sweeper[0].metadata_options[0].http_put_response_hop_limit == 1
    error_message = "The instance answers metadata requests without a token."
  }
  assert {
    condition     = aws_instance.sweeper[0].associate_public_ip_address == false && aws_instance.sweeper[0].subnet_id == aws_subnet.private[local.zones[0]].id
    error_message = "The instance is public."
  }
  assert {
    condition     = aws_instance.sweeper[0].root_block_device[0].encrypted && aws_ebs_volume.data[0].encrypted && aws_ebs_volume.data[0].kms_key_id == aws_kms_key.own[0].arn
    error_message = "A volume is not encrypted."
  }
  assert {
    condition     = aws_kms_key.own[0].enable_key_rotation
    error_message = "The key is not rotated."
  }
  assert {
    condition     = aws_instance.sweeper[0].key_name == null
    error_message = "There is a key for ssh; Session Manager needs none."
  }
  assert {
    condition     = keys(aws_vpc_security_group_ingress_rule.clients) == ["10.0.0.0/8"] && aws_vpc_security_group_ingress_rule.clients["10.0.0.0/8"].from_port == 8090
    error_message = "Another port than the sweeper's is open, or to others than the clients."
  }
  assert {
    condition     = !anytrue([for subnet in values(aws_subnet.public) : subnet.map_public_ip_on_launch])
    error_message = "Whatever starts in a public subnet gets a public address."
  }
}

run "has_a_database_that_outlives_it" {
  assert {
    condition     = aws_ebs_volume.data[0].final_snapshot && aws_dlm_lifecycle_policy.data[0].policy_details[0].target_tags["cloud-sweeper:copied"] == "cloud-sweeper"
    error_message = "The database is not copied."
  }
  assert {
    condition     = length(aws_db_instance.sweeper) == 0 && length(aws_ecs_service.sweeper) == 0 && length(aws_lb.sweeper) == 0
    error_message = "The small size makes something of the other one."
  }
}

run "reads_its_own_account_and_assumes_nobody" {
  assert {
    condition     = strcontains(output.policy, "ec2:DescribeInstances") && !strcontains(output.policy, "sts:AssumeRole") && !strcontains(output.policy, "ec2:StopInstances")
    error_message = "The sweeper's role may more than read its own account, or less: ${output.policy}"
  }
}

run "has_an_alarm_for_each_metric_of_its_log" {
  assert {
    condition     = keys(aws_cloudwatch_metric_alarm.log) == keys(aws_cloudwatch_log_metric_filter.sweeper) && length(aws_cloudwatch_metric_alarm.log) == 6
    error_message = "A metric of the log has no alarm."
  }
  assert {
    condition     = aws_cloudwatch_metric_alarm.log["CompleteSweeps"].treat_missing_data == "breaching"
    error_message = "A sweeper that logs nothing raises no alarm."
  }
  assert {
    condition     = aws_cloudwatch_log_group.sweeper.retention_in_days == 365 && aws_cloudwatch_log_group.sweeper.kms_key_id == aws_kms_key.own[0].arn
    error_message = "Logs are not encrypted, or kept for another time."
  }
}

run "writes_the_configuration_that_was_asked_for" {
  variables {
    slack = { channel = "#cloud-costs", token_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:slack-AbCdEf", app_token_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:app-AbCdEf", teams = [
      { name = "genomics", channel = "#genomics", tags = { team = "genomics" }, hours = { days = ["mon", "tue"], from = "08:00", to = "18:00", zone = "Europe/Berlin" }, channel_outside_hours = "#on-call" },
      { name = "ci", channel = "#ci", launchers = ["ci/*"] },
    ] }
    email           = { host = "smtp.example.com", from = "Cloud Sweeper <sweeper@example.com>", to = ["ops@example.com"] }
    accounts        = [{ role_arn = "arn:aws:iam::111122223333:role/cloud-sweeper", external_id = "an-id-of-your-own", regions = ["eu-central-1"] }]
    act             = { scopes = ["111122223333:eu-central-1"], roles = [{ role_arn = "arn:aws:iam::111122223333:role/cloud-sweeper-act", external_id = "an-id-of-your-own" }] }
    approval_policy = "[[rule]]\nname = \"all\"\napprovers = [\"*\"]\n"
    settings        = { "verdict.idle_after" = "1h", "verdict.schedules_wait" = false, "onprem.hourly_usd" = { default = "0.25" } }
    tls             = { certificate_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:crt-AbCdEf", key_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:key-AbCdEf" }
    domain          = { name = "sweeper.example.com", zone_id = "Z0123456789" }
  }

  assert {
    condition = alltrue([for line in [
      "accounts = [{ \"external_id\" = \"an-id-of-your-own\", \"regions\" = [\"eu-central-1\"], \"role_arn\" = \"arn:aws:iam::111122223333:role/cloud-sweeper\" }]",
      "token_file = \"/run/cloud-sweeper-secrets/slack-token\"",
      "app_token_file = \"/run/cloud-sweeper-secrets/slack-app-token\"",
      "teams = [{ \"channel\" = \"#genomics\", \"channel_outside_hours\" = \"#on-call\", \"hours\" = { \"days\" = [\"mon\",\"tue\"], \"from\" = \"08:00\", \"to\" = \"18:00\", \"zone\" = \"Europe/Berlin\" }, \"name\" = \"genomics\", \"tags\" = { \"team\" = \"genomics\" } }, { \"channel\" = \"#ci\", \"launchers\" = [\"ci/*\"], \"name\" = \"ci\" }]",
      "policy_file = \"/etc/cloud-sweeper/policy.toml\"",
      "scopes = [\"111122223333:eu-central-1\"]",
      "idle_after = \"1h\"",
      "schedules_wait = false",
      "hourly_usd = { \"default\" = \"0.25\" }",
      "tls_key = \"/run/cloud-sweeper-secrets/tls.key\"",
      "audience = \"https://sweeper.example.com:8090\"",
    ] : contains(split("\n", output.configuration), line)])
    error_message = "A setting is missing from the configuration:\n${output.configuration}"
  }
  assert {
    condition     = output.url == "https://sweeper.example.com:8090"
    error_message = "Agents are told another address: ${output.url}"
  }
  assert {
    condition = alltrue([for action in ["sts:AssumeRole", "sts:SetSourceIdentity"] : anytrue([
    for statement in jsondecode(output.policy).Statement : statement.Action == action && contains(flatten([statement.Resource]), "arn:aws:iam::111122223333:role/cloud-sweeper-act")])])
    error_message = "The sweeper may not assume the act role in the name of who approved."
  }
  assert {
    condition     = !strcontains(jsonencode([for statement in jsondecode(output.policy).Statement : statement if statement.Action == "sts:AssumeRole"]), "*")
    error_message = "The sweeper may assume roles that it was not told of."
  }
  assert {
    condition     = length(aws_instance.sweeper[0].user_data) < 16384
    error_message = "User data may have 16 KiB; it has ${length(aws_instance.sweeper[0].user_data)}."
  }
}

run "has_a_channel_for_the_night_too" {
  command = plan

  variables {
    slack = { channel = "#cloud-costs", token_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:slack-AbCdEf", teams = [
      { name = "genomics", channel = "#genomics", hours = { days = ["mon"], from = "08:00", to = "18:00", zone = "Europe/Berlin" } },
    ] }
  }

  expect_failures = [var.slack]
}

run "tells_teams_apart_by_their_names" {
  command = plan

  variables {
    slack = { channel = "#cloud-costs", token_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:slack-AbCdEf", teams = [
      { name = "genomics", channel = "#genomics", owners = ["ada"] },
      { name = "genomics", channel = "#others" },
    ] }
  }

  expect_failures = [var.slack]
}

run "needs_a_binary" {
  command = plan

  variables {
    artifact = null
  }

  expect_failures = [var.artifact]
}

run "is_never_open_to_the_whole_internet" {
  command = plan

  variables {
    client_cidrs = ["0.0.0.0/0"]
  }

  expect_failures = [var.client_cidrs]
}

run "keeps_no_secret_in_its_settings" {
  command = plan

  variables {
    settings = { "slack.token" = "xoxb-secret" }
  }

  expect_failures = [var.settings]
}

run "acts_nowhere_without_a_role" {
  command = plan

  variables {
    act = { scopes = ["111122223333:eu-central-1"] }
  }

  expect_failures = [var.act]
}

run "runs_on_arm_where_that_is_asked_for" {
  variables {
    architecture = "arm64"
  }
  assert {
    condition     = aws_instance.sweeper[0].instance_type == "t4g.small" && endswith(data.aws_ssm_parameter.image[0].name, "-arm64")
    error_message = "Machine and image are not both for Arm: ${aws_instance.sweeper[0].instance_type} from ${data.aws_ssm_parameter.image[0].name}"
  }
}

run "needs_an_architecture_that_there_is_a_sweeper_for" {
  command = plan
  variables {
    architecture = "aarch64"
  }
  expect_failures = [var.architecture]
}
