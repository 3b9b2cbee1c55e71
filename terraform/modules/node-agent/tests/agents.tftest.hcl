variables {
  sweeper_url           = "https://sweeper.example.com"
  join_token_secret_arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:cloud-sweeper/join-token-AbCdEf"
  kms_key_arn           = "arn:aws:kms:eu-central-1:123456789012:key/00000000-0000-4000-8000-000000000000"
  artifact              = { bucket = "binaries-of-ours", key = "node-agent", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }
}

run "installs_nothing_unless_asked" {
  assert {
    condition     = length(aws_ssm_association.install) == 0 && length(aws_launch_template.batch) == 0 && length(aws_ecs_service.daemon) == 0
    error_message = "Something is installed, and nobody asked for it."
  }
}

run "installs_on_existing_instances" {
  variables {
    targets      = [{ key = "tag:cloud-sweeper:agent", values = ["yes"] }]
    gpu_artifact = { bucket = "binaries-of-ours", key = "node-agent-gpu", sha256 = "1111111111111111111111111111111111111111111111111111111111111111" }
  }

  assert {
    condition     = aws_ssm_association.install[0].targets[0].key == "tag:cloud-sweeper:agent" && aws_ssm_association.install[0].max_errors == "5%"
    error_message = "The association is applied to other instances, or does not stop after failures."
  }
  assert {
    condition     = strcontains(aws_ssm_document.install.content, var.artifact.sha256) && strcontains(aws_ssm_document.install.content, "sha256sum -c --status")
    error_message = "The binary is not checked."
  }
  assert {
    condition     = strcontains(aws_ssm_document.install.content, "node-agent-gpu")
    error_message = "The helper for GPUs is not installed."
  }
  assert {
    condition     = length(jsondecode(output.instance_policy.document).Statement) == 3 && !strcontains(output.instance_policy.document, "\"*\"")
    error_message = "Instances need more than the binaries and the token."
  }
}

run "each_processor_gets_its_own" {
  variables {
    arm_artifact          = { bucket = "binaries-of-ours", key = "node-agent-of-arm", sha256 = "2222222222222222222222222222222222222222222222222222222222222222" }
    batch_launch_template = true
  }

  assert {
    condition     = strcontains(aws_ssm_document.install.content, "x86_64) fetch 'binaries-of-ours' 'node-agent' ${var.artifact.sha256} node-agent ;;") && strcontains(aws_ssm_document.install.content, "aarch64) fetch 'binaries-of-ours' 'node-agent-of-arm' ${var.arm_artifact.sha256} node-agent ;;")
    error_message = "A machine is given the program of another processor."
  }
  assert {
    condition     = strcontains(output.instance_policy.document, "binaries-of-ours/node-agent-of-arm")
    error_message = "Instances of Arm may not read their binary."
  }
  assert {
    condition     = length(base64decode(aws_launch_template.batch[0].user_data)) < 16384
    error_message = "User data may have 16 KiB; it has ${length(base64decode(aws_launch_template.batch[0].user_data))}."
  }
}

run "user_data_delays_nothing_and_holds_no_token" {
  variables {
    batch_launch_template = true
  }

  assert {
    condition     = strcontains(output.user_data, "systemctl start --no-block") && !strcontains(output.user_data, "aws s3 cp")
    error_message = "User data waits for the installation."
  }
  assert {
    condition     = startswith(output.user_data_ecs, "MIME-Version: 1.0\nContent-Type: multipart/mixed;")
    error_message = "AWS Batch takes MIME multi-part alone."
  }
  assert {
    condition     = length(base64decode(aws_launch_template.batch[0].user_data)) < 16384
    error_message = "User data may have 16 KiB; it has ${length(base64decode(aws_launch_template.batch[0].user_data))}."
  }
  assert {
    condition     = aws_launch_template.batch[0].metadata_options[0].http_tokens == "required"
    error_message = "Machines answer metadata requests without a token."
  }
}

run "a_daemon_on_ecs" {
  variables {
    ecs = {
      cluster_arn = "arn:aws:ecs:eu-central-1:123456789012:cluster/batch"
      image       = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/cloud-sweeper/node-agent@sha256:0000000000000000000000000000000000000000000000000000000000000000"
    }
  }

  assert {
    condition     = aws_ecs_service.daemon[0].scheduling_strategy == "DAEMON" && aws_ecs_task_definition.daemon[0].pid_mode == "host"
    error_message = "It does not see every machine, or not its processes."
  }
  assert {
    condition     = alltrue([for container in jsondecode(aws_ecs_task_definition.daemon[0].container_definitions) : !container.privileged && container.readonlyRootFilesystem && container.linuxParameters.capabilities.drop == ["ALL"]])
    error_message = "The container has more rights than it needs."
  }
  assert {
    condition     = aws_ecs_task_definition.daemon[0].task_role_arn == null
    error_message = "The agent has a role in AWS, and calls nothing."
  }
}

run "without_a_binary_for_arm_such_a_machine_says_so" {
  assert {
    condition     = !strcontains(aws_ssm_document.install.content, "aarch64)") && strcontains(aws_ssm_document.install.content, "there is no agent for this machine")
    error_message = "A machine of Arm would be given a program that it cannot run."
  }
}

run "an_address_has_no_path" {
  command = plan

  variables {
    sweeper_url = "https://sweeper.example.com/v1"
  }

  expect_failures = [var.sweeper_url]
}

run "a_key_cannot_break_out_of_the_script" {
  command = plan

  variables {
    artifact = { bucket = "binaries-of-ours", key = "x' ; reboot ; '", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }
  }

  expect_failures = [var.artifact]
}
