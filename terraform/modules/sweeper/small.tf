# Size small: one instance. The database is SQLite on a volume of its own, which outlives the instance and is copied each day.

data "aws_ssm_parameter" "image" {
  count = local.small == 1 && var.ami_id == null ? 1 : 0
  name  = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-${var.architecture}"
}

data "aws_subnet" "small" {
  count = local.small
  id    = local.small_subnet_id
}

locals {
  small_subnet_id = local.small == 0 ? null : var.public ? local.public_subnet_ids[0] : local.private_subnet_ids[0]
  small_port      = local.port
  scheme          = local.available == 1 || var.tls != null ? "https" : "http"

  agent_config = jsonencode({
    agent = { metrics_collection_interval = 60 }
    logs = {
      logs_collected = {
        files = {
          collect_list = [
            { file_path = "/var/log/cloud-sweeper/sweeper.log", log_group_name = aws_cloudwatch_log_group.sweeper.name, log_stream_name = "{instance_id}" },
            { file_path = "/var/log/cloud-init-output.log", log_group_name = aws_cloudwatch_log_group.sweeper.name, log_stream_name = "{instance_id}-set-up" },
          ]
        }
      }
    }
    metrics = {
      namespace         = local.metrics_namespace
      append_dimensions = { InstanceId = "$${aws:InstanceId}" }
      metrics_collected = {
        disk = { measurement = ["used_percent"], resources = [local.data_dir], drop_device = true, ignore_file_system_types = ["sysfs", "tmpfs"] }
      }
      aggregation_dimensions = [["InstanceId", "path"]]
    }
  })

  user_data = local.small == 0 ? "" : templatefile("${path.module}/files/user-data.sh.tftpl", {
    region         = local.region
    volume_id      = aws_ebs_volume.data[0].id
    artifact       = var.artifact
    data_dir       = local.data_dir
    config_dir     = local.config_dir
    secrets_dir    = local.secrets_dir
    plain_files    = local.plain_files
    secret_files   = local.secret_files
    service        = file("${path.module}/files/sweeper.service")
    agent_config   = local.agent_config
    join_token_arn = aws_secretsmanager_secret.join_token.arn
  })
}

resource "aws_instance" "sweeper" {
  # checkov:skip=CKV_AWS_88: it has a public address where public = true asks for one, and client_cidrs alone reach it then.
  count = local.small

  ami                         = coalesce(var.ami_id, try(data.aws_ssm_parameter.image[0].value, null))
  instance_type               = coalesce(var.instance_type, var.architecture == "arm64" ? "t4g.small" : "t3.small")
  subnet_id                   = local.small_subnet_id
  associate_public_ip_address = var.public
  vpc_security_group_ids      = [aws_security_group.sweeper.id]
  iam_instance_profile        = aws_iam_instance_profile.sweeper[0].name
  # Whole: systemd, packages and the service are set up by it. Other than the volume, nothing on the instance is worth keeping.
  user_data                   = local.user_data
  user_data_replace_on_change = true
  ebs_optimized               = true
  monitoring                  = true
  disable_api_termination     = false

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    instance_metadata_tags      = "disabled"
  }

  root_block_device {
    encrypted             = true
    kms_key_id            = local.kms_key_arn
    volume_type           = "gp3"
    volume_size           = 10
    delete_on_termination = true
  }

  tags        = merge(local.tags, { Name = var.name, "cloud-sweeper:exempt" = "the sweeper itself" })
  volume_tags = merge(local.tags, { Name = "${var.name}-root" })

  lifecycle {
    # A newer image is no reason to make it anew: taint it, or give ami_id.
    ignore_changes = [ami, volume_tags]
  }

  depends_on = [aws_iam_role_policy.sweeper, aws_iam_role_policy.small]
}

resource "aws_ebs_volume" "data" {
  count = local.small

  availability_zone = data.aws_subnet.small[0].availability_zone
  size              = var.data_volume_gib
  type              = "gp3"
  encrypted         = true
  kms_key_id        = local.kms_key_arn
  final_snapshot    = true
  tags              = merge(local.tags, { Name = "${var.name}-data", "cloud-sweeper:copied" = var.name })
}

resource "aws_volume_attachment" "data" {
  count = local.small

  device_name                    = "/dev/sdf"
  volume_id                      = aws_ebs_volume.data[0].id
  instance_id                    = aws_instance.sweeper[0].id
  stop_instance_before_detaching = true
}

# A copy each day. SQLite writes ahead and syncs each transaction, so that a copy at any moment is a database.
resource "aws_dlm_lifecycle_policy" "data" {
  count = local.small

  description        = "Daily copies of the database of Cloud Sweeper"
  execution_role_arn = aws_iam_role.copies[0].arn
  state              = "ENABLED"

  policy_details {
    resource_types = ["VOLUME"]
    target_tags    = { "cloud-sweeper:copied" = var.name }

    schedule {
      name      = "daily"
      copy_tags = true

      create_rule {
        interval      = 24
        interval_unit = "HOURS"
        times         = ["03:00"]
      }

      retain_rule {
        count = 14
      }
    }
  }

  tags = local.tags
}

resource "aws_iam_role" "copies" {
  count = local.small

  name        = "${var.name}-copies-${local.region}"
  description = "Copies the volume of Cloud Sweeper's database each day"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "DataLifecycleManager"
      Effect    = "Allow"
      Principal = { Service = "dlm.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
  tags = local.tags
}

resource "aws_iam_role_policy_attachment" "copies" {
  count = local.small

  role       = aws_iam_role.copies[0].name
  policy_arn = "arn:${local.partition}:iam::aws:policy/service-role/AWSDataLifecycleManagerServiceRole"
}

resource "aws_route53_record" "small" {
  count = var.domain == null ? 0 : local.small

  zone_id = var.domain.zone_id
  name    = var.domain.name
  type    = "A"
  ttl     = 60
  records = [var.public ? aws_instance.sweeper[0].public_ip : aws_instance.sweeper[0].private_ip]
}

# What may reach the sweeper, and what it may reach.
resource "aws_security_group" "sweeper" {
  # checkov:skip=CKV2_AWS_5: it is attached to the instance or to the service, of which each size has one.
  name        = "${var.name}-sweeper"
  description = "Cloud Sweeper: agents and people in, AWS and Slack out"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-sweeper" })

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "clients" {
  for_each = local.small == 1 ? toset(var.client_cidrs) : toset([])

  security_group_id = aws_security_group.sweeper.id
  description       = "Agents and people"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = local.port
  to_port           = local.port
}

resource "aws_vpc_security_group_egress_rule" "https" {
  security_group_id = aws_security_group.sweeper.id
  description       = "APIs of AWS and Slack: their addresses change, so that names and not networks bound it"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
}

resource "aws_vpc_security_group_egress_rule" "mail" {
  count = var.email == null ? 0 : 1

  security_group_id = aws_security_group.sweeper.id
  description       = "The mail server"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = var.email.port
  to_port           = var.email.port
}
