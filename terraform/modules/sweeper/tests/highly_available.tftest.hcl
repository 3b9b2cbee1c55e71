variables {
  size         = "highly_available"
  image        = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/cloud-sweeper/sweeper@sha256:0000000000000000000000000000000000000000000000000000000000000000"
  files_image  = "123456789012.dkr.ecr.eu-central-1.amazonaws.com/busybox@sha256:0000000000000000000000000000000000000000000000000000000000000000"
  domain       = { name = "sweeper.example.com", zone_id = "Z0123456789" }
  client_cidrs = ["10.0.0.0/8"]
}

run "has_two_of_everything" {
  assert {
    condition     = aws_ecs_service.sweeper[0].desired_count == 2 && aws_ecs_service.sweeper[0].deployment_minimum_healthy_percent == 100
    error_message = "One sweeper is not highly available."
  }
  assert {
    condition     = aws_db_instance.sweeper[0].multi_az && length(aws_nat_gateway.own) == 2 && length(aws_lb.sweeper[0].subnets) == 2
    error_message = "Something is in one zone alone."
  }
  assert {
    condition     = length(aws_instance.sweeper) == 0 && length(aws_ebs_volume.data) == 0
    error_message = "This size makes something of the small one."
  }
}

run "has_a_private_and_encrypted_database" {
  assert {
    condition     = aws_db_instance.sweeper[0].storage_encrypted && aws_db_instance.sweeper[0].kms_key_id == aws_kms_key.own[0].arn && !aws_db_instance.sweeper[0].publicly_accessible
    error_message = "The database is public or not encrypted."
  }
  assert {
    condition     = aws_db_instance.sweeper[0].manage_master_user_password && aws_db_instance.sweeper[0].password == null
    error_message = "The database's password stands in the state."
  }
  assert {
    condition     = anytrue([for parameter in aws_db_parameter_group.sweeper[0].parameter : parameter.name == "rds.force_ssl" && parameter.value == "1"])
    error_message = "The database takes connections in clear text."
  }
  assert {
    condition     = aws_db_instance.sweeper[0].deletion_protection && !aws_db_instance.sweeper[0].skip_final_snapshot && aws_db_instance.sweeper[0].backup_retention_period == 14
    error_message = "The database can be lost."
  }
  assert {
    condition     = aws_vpc_security_group_ingress_rule.database[0].referenced_security_group_id == aws_security_group.sweeper.id
    error_message = "Others than the sweeper reach the database."
  }
}

run "speaks_tls_and_is_internal" {
  assert {
    condition     = aws_lb.sweeper[0].internal && aws_lb.sweeper[0].drop_invalid_header_fields && aws_lb.sweeper[0].enable_deletion_protection
    error_message = "The load balancer is public, or can be deleted."
  }
  assert {
    condition     = aws_lb_listener.https[0].protocol == "HTTPS" && strcontains(aws_lb_listener.https[0].ssl_policy, "TLS13")
    error_message = "The load balancer speaks something else than current TLS."
  }
  assert {
    condition     = aws_lb_target_group.sweeper[0].health_check[0].path == "/readyz"
    error_message = "A sweeper without a database gets requests."
  }
  assert {
    condition     = output.url == "https://sweeper.example.com"
    error_message = "Agents are told another address."
  }
}

run "tasks_hold_no_secret_and_no_right" {
  assert {
    condition     = !aws_ecs_service.sweeper[0].network_configuration[0].assign_public_ip && !aws_ecs_service.sweeper[0].enable_execute_command
    error_message = "A task of the service is public, or can be opened."
  }
  assert {
    condition     = alltrue([for container in jsondecode(aws_ecs_task_definition.sweeper[0].container_definitions) : container.readonlyRootFilesystem])
    error_message = "A container can write its root."
  }
  assert {
    condition     = jsondecode(aws_ecs_task_definition.sweeper[0].container_definitions)[1].user == "65532:65532"
    error_message = "The sweeper runs as root."
  }
  assert {
    condition     = !strcontains(aws_ecs_task_definition.sweeper[0].container_definitions, "PASSWORD\",\"value\"")
    error_message = "A password stands in the task definition."
  }
  assert {
    condition     = strcontains(output.configuration, "url = \"postgres://sweeper@db.example.internal:5432/sweeper?sslmode=require\"")
    error_message = "The sweeper is told of another database, or with a password:\n${output.configuration}"
  }
}

run "checks_the_databases_certificate_where_it_has_the_authoritys" {
  variables {
    database = { ca_pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n" }
  }

  assert {
    condition     = strcontains(output.configuration, "sslmode=verify-full\\u0026sslrootcert=/etc/cloud-sweeper/database-ca.pem")
    error_message = "The sweeper does not check with which database it speaks:\n${output.configuration}"
  }
}

run "takes_an_existing_vpc_and_certificate" {
  variables {
    network         = { vpc_id = "vpc-0123456789abcdef0", private_subnet_ids = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"] }
    certificate_arn = "arn:aws:acm:eu-central-1:123456789012:certificate/00000000-0000-4000-8000-000000000000"
  }

  assert {
    condition     = length(aws_vpc.own) == 0 && length(aws_nat_gateway.own) == 0 && aws_security_group.sweeper.vpc_id == "vpc-0123456789abcdef0"
    error_message = "A VPC is made beside the given one."
  }
  assert {
    condition     = length(aws_acm_certificate.sweeper) == 0 && aws_lb_listener.https[0].certificate_arn == var.certificate_arn
    error_message = "A certificate is made beside the given one."
  }
}

run "an_image_is_known_by_its_digest" {
  command = plan

  variables {
    image = "example.com/sweeper:latest"
  }

  expect_failures = [var.image]
}

run "runs_on_arm_where_that_is_asked_for" {
  command = plan

  variables {
    architecture = "arm64"
  }

  assert {
    condition     = alltrue([for definition in [aws_ecs_task_definition.sweeper[0], aws_ecs_task_definition.administration[0]] : definition.runtime_platform[0].cpu_architecture == "ARM64"])
    error_message = "A task would start on another processor."
  }
}

run "one_task_is_not_enough" {
  command = plan

  variables {
    tasks = { count = 1 }
  }

  expect_failures = [var.tasks]
}

run "one_subnet_is_not_enough" {
  command = plan

  variables {
    network = { vpc_id = "vpc-0123456789abcdef0", private_subnet_ids = ["subnet-0123456789abcdef0"] }
  }

  expect_failures = [var.network]
}

run "needs_a_certificate" {
  command = plan

  variables {
    domain = null
  }

  expect_failures = [var.certificate_arn]
}
