# Size highly_available: sweepers on Fargate behind a load balancer that ends TLS. Any of them takes heartbeats, and they share the sweeps.

locals {
  # Configuration and secrets are written by a container that ends before the sweeper starts. They lie in the task's own storage, which goes with the task.
  write_files = join("\n", concat(
    ["set -eu", "umask 077"],
    [for name in keys(local.plain_files) : "printf %s \"$PLAIN_${upper(replace(name, "/[^a-z]/", "_"))}\" | base64 -d > ${local.config_dir}/${name}"],
    [for name in keys(local.secret_files) : "printf %s \"$SECRET_${upper(replace(name, "/[^a-z]/", "_"))}\" > ${local.secrets_dir}/${name}"],
    ["chown -R ${var.user_id}:${var.user_id} ${local.config_dir} ${local.secrets_dir} ${local.data_dir}"],
  ))
  mounts = [
    { sourceVolume = "config", containerPath = local.config_dir },
    { sourceVolume = "secrets", containerPath = local.secrets_dir },
    { sourceVolume = "data", containerPath = local.data_dir },
  ]
  task_log = local.available == 0 ? null : {
    logDriver = "awslogs"
    options   = { "awslogs-group" = aws_cloudwatch_log_group.sweeper.name, "awslogs-region" = local.region, "awslogs-stream-prefix" = "task" }
  }

  files_container = local.available == 0 ? null : {
    name                   = "files"
    image                  = var.files_image
    essential              = false
    command                = ["sh", "-c", local.write_files]
    user                   = "0"
    readonlyRootFilesystem = true
    linuxParameters        = { capabilities = { drop = ["ALL"], add = ["CHOWN", "DAC_OVERRIDE"] } }
    mountPoints            = [for mount in local.mounts : merge(mount, { readOnly = false })]
    environment            = [for name, content in local.plain_files : { name = "PLAIN_${upper(replace(name, "/[^a-z]/", "_"))}", value = base64encode(content) }]
    secrets                = [for name, arn in local.secret_files : { name = "SECRET_${upper(replace(name, "/[^a-z]/", "_"))}", valueFrom = arn }]
    logConfiguration       = local.task_log
  }
  sweeper_container = local.available == 0 ? null : {
    name                   = "sweeper"
    image                  = var.image
    essential              = true
    command                = ["serve"]
    user                   = "${var.user_id}:${var.user_id}"
    readonlyRootFilesystem = true
    linuxParameters        = { initProcessEnabled = true }
    dependsOn              = [{ containerName = "files", condition = "SUCCESS" }]
    # What is under way has 30 s to end: a sweeper that is asked to stop releases its scopes.
    stopTimeout      = 60
    portMappings     = [{ containerPort = local.port, protocol = "tcp" }]
    mountPoints      = [for mount in local.mounts : merge(mount, { readOnly = mount.sourceVolume != "data" })]
    environment      = [{ name = "NO_COLOR", value = "1" }]
    secrets          = [{ name = "PGPASSWORD", valueFrom = "${local.database_secret_arn}:password::" }]
    ulimits          = [{ name = "nofile", softLimit = 65536, hardLimit = 65536 }]
    logConfiguration = local.task_log
  }
}

resource "aws_ecs_cluster" "sweeper" {
  count = local.available

  name = var.name

  setting {
    name  = "containerInsights"
    value = "enabled"
  }

  configuration {
    execute_command_configuration {
      kms_key_id = local.kms_key_arn
      logging    = "OVERRIDE"

      log_configuration {
        cloud_watch_encryption_enabled = true
        cloud_watch_log_group_name     = aws_cloudwatch_log_group.sweeper.name
      }
    }
  }

  tags = local.tags
}

resource "aws_ecs_task_definition" "sweeper" {
  count = local.available

  family                   = var.name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.tasks.cpu
  memory                   = var.tasks.memory
  execution_role_arn       = aws_iam_role.starts[0].arn
  task_role_arn            = aws_iam_role.sweeper.arn
  container_definitions    = jsonencode([local.files_container, local.sweeper_container])

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = upper(var.architecture)
  }

  dynamic "volume" {
    for_each = local.mounts
    content {
      name = volume.value.sourceVolume
    }
  }

  tags = local.tags
}

# One more sweeper, started by hand for its commands (enrol an approver, read a token) and stopped afterwards.
resource "aws_ecs_task_definition" "administration" {
  # checkov:skip=CKV_AWS_336: ECS Exec writes to the container's root, so that this task, which people start by hand for an hour, cannot have a read-only one. Those of the service have.
  count = local.available

  family                   = "${var.name}-administration"
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.tasks.cpu
  memory                   = var.tasks.memory
  execution_role_arn       = aws_iam_role.starts[0].arn
  task_role_arn            = aws_iam_role.sweeper.arn
  container_definitions    = jsonencode([local.files_container, merge(local.sweeper_container, { readonlyRootFilesystem = false })])

  runtime_platform {
    operating_system_family = "LINUX"
    cpu_architecture        = upper(var.architecture)
  }

  dynamic "volume" {
    for_each = local.mounts
    content {
      name = volume.value.sourceVolume
    }
  }

  tags = local.tags
}

resource "aws_ecs_service" "sweeper" {
  count = local.available

  name                               = var.name
  cluster                            = aws_ecs_cluster.sweeper[0].id
  task_definition                    = aws_ecs_task_definition.sweeper[0].arn
  desired_count                      = var.tasks.count
  launch_type                        = "FARGATE"
  platform_version                   = "LATEST"
  deployment_minimum_healthy_percent = 100
  deployment_maximum_percent         = 200
  health_check_grace_period_seconds  = 120
  enable_execute_command             = false
  enable_ecs_managed_tags            = true
  propagate_tags                     = "SERVICE"

  # A version that does not become ready is rolled back.
  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  network_configuration {
    subnets          = local.private_subnet_ids
    security_groups  = [aws_security_group.sweeper.id]
    assign_public_ip = false
  }

  load_balancer {
    target_group_arn = aws_lb_target_group.sweeper[0].arn
    container_name   = "sweeper"
    container_port   = local.port
  }

  tags = local.tags

  depends_on = [aws_lb_listener.https, aws_iam_role_policy.starts, aws_iam_role_policy.sweeper]
}

# ---- The load balancer ----

resource "aws_lb" "sweeper" {
  # checkov:skip=CKV_AWS_91: access logs are kept where access_log_bucket names a bucket; a load balancer cannot write to one that it may not, and who owns it is not for this module to say. The sweeper logs each refused request by itself.
  # checkov:skip=CKV2_AWS_28: client_cidrs, which cannot be the whole Internet, are all that reaches it, and agents' requests carry tokens; a firewall for strangers' requests has none to look at.
  # checkov:skip=CKV_AWS_150: deletion_protection is an input, true unless somebody takes it away before terraform destroy.
  count = local.available

  name                       = var.name
  load_balancer_type         = "application"
  internal                   = !var.public
  subnets                    = var.public ? local.public_subnet_ids : local.private_subnet_ids
  security_groups            = [aws_security_group.balancer[0].id]
  drop_invalid_header_fields = true
  desync_mitigation_mode     = "strictest"
  enable_deletion_protection = var.deletion_protection
  # An agent keeps its connection between two heartbeats, which are 30 s apart.
  idle_timeout = 75

  dynamic "access_logs" {
    for_each = var.access_log_bucket == null ? [] : [var.access_log_bucket]
    content {
      bucket  = access_logs.value
      prefix  = var.name
      enabled = true
    }
  }

  tags = local.tags
}

resource "aws_lb_target_group" "sweeper" {
  # checkov:skip=CKV_AWS_378: from the load balancer to the task it is one hop inside the private subnets, between two security groups. A load balancer checks no certificate of what is behind it, so that TLS there would prove nothing.
  count = local.available

  name                 = var.name
  port                 = local.port
  protocol             = "HTTP"
  target_type          = "ip"
  vpc_id               = local.vpc_id
  deregistration_delay = 30

  # Ready is who has a database that answers.
  health_check {
    path                = "/readyz"
    matcher             = "200"
    interval            = 15
    timeout             = 5
    healthy_threshold   = 2
    unhealthy_threshold = 4
  }

  tags = local.tags
}

resource "aws_lb_listener" "https" {
  count = local.available

  load_balancer_arn = aws_lb.sweeper[0].arn
  port              = 443
  protocol          = "HTTPS"
  ssl_policy        = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  certificate_arn   = var.certificate_arn != null ? var.certificate_arn : aws_acm_certificate_validation.sweeper[0].certificate_arn

  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.sweeper[0].arn
  }

  tags = local.tags
}

resource "aws_security_group" "balancer" {
  count = local.available

  name        = "${var.name}-balancer"
  description = "Load balancer of Cloud Sweeper: agents and people in, the sweeper out"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-balancer" })
}

resource "aws_vpc_security_group_ingress_rule" "balancer" {
  for_each = local.available == 1 ? toset(var.client_cidrs) : toset([])

  security_group_id = aws_security_group.balancer[0].id
  description       = "Agents and people"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "balancer" {
  count = local.available

  security_group_id            = aws_security_group.balancer[0].id
  description                  = "The sweeper"
  referenced_security_group_id = aws_security_group.sweeper.id
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
}

resource "aws_vpc_security_group_ingress_rule" "service" {
  count = local.available

  security_group_id            = aws_security_group.sweeper.id
  description                  = "The load balancer"
  referenced_security_group_id = aws_security_group.balancer[0].id
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
}

# ---- Name and certificate ----

locals {
  makes_certificate = local.available == 1 && var.certificate_arn == null ? 1 : 0
}

resource "aws_acm_certificate" "sweeper" {
  count = local.makes_certificate

  domain_name       = var.domain.name
  validation_method = "DNS"
  tags              = local.tags

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_route53_record" "certificate" {
  count = local.makes_certificate

  zone_id = var.domain.zone_id
  name    = one(aws_acm_certificate.sweeper[0].domain_validation_options).resource_record_name
  type    = one(aws_acm_certificate.sweeper[0].domain_validation_options).resource_record_type
  records = [one(aws_acm_certificate.sweeper[0].domain_validation_options).resource_record_value]
  ttl     = 300
}

resource "aws_acm_certificate_validation" "sweeper" {
  count = local.makes_certificate

  certificate_arn         = aws_acm_certificate.sweeper[0].arn
  validation_record_fqdns = [aws_route53_record.certificate[0].fqdn]
}

resource "aws_route53_record" "balancer" {
  count = var.domain == null ? 0 : local.available

  zone_id = var.domain.zone_id
  name    = var.domain.name
  type    = "A"

  alias {
    name                   = aws_lb.sweeper[0].dns_name
    zone_id                = aws_lb.sweeper[0].zone_id
    evaluate_target_health = true
  }
}
