# The agent on machines: existing ones by Systems Manager, new ones by user data, those of AWS Batch by a launch template, those of ECS by a daemon. Each way installs the binary whose
# SHA-256 was given, as packaging/systemd has it; the join token comes from Secrets Manager and stands in no user data.

data "aws_region" "here" {}

data "aws_partition" "here" {}

data "aws_caller_identity" "here" {}

locals {
  region    = data.aws_region.here.region
  partition = data.aws_partition.here.partition
  account   = data.aws_caller_identity.here.account_id
  tags      = merge(var.tags, { "cloud-sweeper:part" = "node-agent" })

  plain = "sweeper_url = ${jsonencode(var.sweeper_url)}"
  # Without the word of Docker and ECS's own agent, no machine of ECS is ever idle (docs/operations.md).
  of_ecs = <<-EOF
    sweeper_url = ${jsonencode(var.sweeper_url)}
    containers = true
    docker_socket = "/run/docker.sock"
    ecs_url = "http://127.0.0.1:51678"
  EOF
  # The socket belongs to root. The helper that asks keeps this right, the agent drops it.
  drop_in = <<-EOF
    [Service]
    AmbientCapabilities=CAP_DAC_OVERRIDE
    CapabilityBoundingSet=CAP_DAC_OVERRIDE
  EOF
  # User data may have 16 KiB: what only people read stays in the repository.
  uncommented = { for name in ["node-agent.service", "node-agent.sysusers"] : name => join("\n", [
    for line in split("\n", file("${path.module}/files/${name}")) : line if line != "" && !startswith(line, "#")
  ]) }

  scripts = { for kind, config in { plain = local.plain, ecs = local.of_ecs } : kind => templatefile("${path.module}/files/install.sh.tftpl", {
    region       = local.region
    artifact     = var.artifact
    arm_artifact = var.arm_artifact
    gpu_artifact = var.gpu_artifact
    secret       = var.join_token_secret_arn
    config       = trimspace(config)
    service      = local.uncommented["node-agent.service"]
    sysusers     = local.uncommented["node-agent.sysusers"]
    drop_in      = kind == "ecs" ? trimspace(local.drop_in) : null
  }) }
  later = { for kind, script in local.scripts : kind => templatefile("${path.module}/files/later.sh.tftpl", { script = base64encode(script) }) }

  # Batch and ECS put parts of their own beside these, so that it must be MIME multi-part.
  mime = { for kind, script in local.later : kind => join("\n", [
    "MIME-Version: 1.0",
    "Content-Type: multipart/mixed; boundary=\"==CLOUD-SWEEPER==\"",
    "",
    "--==CLOUD-SWEEPER==",
    "Content-Type: text/x-shellscript; charset=\"us-ascii\"",
    "",
    script,
    "--==CLOUD-SWEEPER==--",
    "",
  ]) }

  artifacts = [for artifact in [var.artifact, var.arm_artifact, var.gpu_artifact] : artifact if artifact != null]
  # What the role of an instance needs, so that the agent can be installed on it. The agent itself calls nothing of AWS's.
  instance_policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        { Sid = "ReadBinaries", Effect = "Allow", Action = "s3:GetObject", Resource = [for artifact in local.artifacts : "arn:${local.partition}:s3:::${artifact.bucket}/${artifact.key}"] },
        { Sid = "ReadJoinToken", Effect = "Allow", Action = "secretsmanager:GetSecretValue", Resource = var.join_token_secret_arn },
      ],
      var.kms_key_arn == null ? [] : [{
        Sid       = "DecryptJoinToken"
        Effect    = "Allow"
        Action    = "kms:Decrypt"
        Resource  = var.kms_key_arn
        Condition = { StringEquals = { "kms:ViaService" = "secretsmanager.${local.region}.amazonaws.com" } }
      }],
    )
  })
}

resource "aws_iam_policy" "instance" {
  name        = var.name
  description = "Lets an instance install the node agent of Cloud Sweeper: attach it to the instances' roles"
  policy      = local.instance_policy
  tags        = local.tags
}

# ---- Existing instances ----

resource "aws_ssm_document" "install" {
  name            = var.name
  document_type   = "Command"
  document_format = "JSON"
  target_type     = "/AWS::EC2::Instance"
  content = jsonencode({
    schemaVersion = "2.2"
    description   = "Installs the node agent of Cloud Sweeper, or brings it up to date"
    mainSteps = [{
      action       = "aws:runShellScript"
      name         = "install"
      precondition = { StringEquals = ["platformType", "Linux"] }
      inputs       = { timeoutSeconds = "600", runCommand = split("\n", local.scripts.plain) }
    }]
  })
  tags = local.tags
}

resource "aws_ssm_association" "install" {
  count = length(var.targets) == 0 ? 0 : 1

  association_name    = var.name
  name                = aws_ssm_document.install.name
  document_version    = "$DEFAULT"
  schedule_expression = var.schedule
  max_concurrency     = var.max_concurrency
  max_errors          = var.max_errors
  compliance_severity = "MEDIUM"

  dynamic "targets" {
    for_each = var.targets
    content {
      key    = targets.value.key
      values = targets.value.values
    }
  }

  tags = local.tags
}

# ---- AWS Batch ----

resource "aws_launch_template" "batch" {
  count = var.batch_launch_template ? 1 : 0

  name                   = "${var.name}-batch"
  description            = "Machines of AWS Batch with the node agent of Cloud Sweeper"
  update_default_version = true
  user_data              = base64encode(local.mime.ecs)

  metadata_options {
    http_endpoint = "enabled"
    http_tokens   = "required"
    # The agent asks from the host, jobs from their containers should not.
    http_put_response_hop_limit = 1
  }

  tag_specifications {
    resource_type = "instance"
    tags          = local.tags
  }

  tags = local.tags
}

# ---- ECS ----

locals {
  ecs = var.ecs == null ? 0 : 1
  # A repository of this or another account; any other one needs no right of AWS's.
  repository = try(regex("^([0-9]{12})\\.dkr\\.ecr\\.([a-z0-9-]+)\\.amazonaws\\.com[a-z.]*/([^@:]+)", var.ecs.image), null)
}

resource "aws_cloudwatch_log_group" "daemon" {
  # checkov:skip=CKV_AWS_338: what an agent says is of use for days; what was measured is kept by the sweeper.
  count = local.ecs

  name              = "/${var.name}"
  retention_in_days = var.ecs.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = local.tags
}

resource "aws_iam_role" "daemon" {
  count = local.ecs

  name        = "${var.name}-starts"
  description = "Fetches image and join token of the node agent's daemon, and writes its log"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "Starts"
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
  tags = local.tags
}

locals {
  starts_policy = var.ecs == null ? null : jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [for statement in jsondecode(local.instance_policy).Statement : statement if statement.Sid != "ReadBinaries"],
      [{ Sid = "WriteLog", Effect = "Allow", Action = ["logs:CreateLogStream", "logs:PutLogEvents"], Resource = "${aws_cloudwatch_log_group.daemon[0].arn}:*" }],
      [for statement in [
        { Sid = "LogInToRepositories", Effect = "Allow", Action = ["ecr:GetAuthorizationToken"], Resource = "*" },
        {
          Sid      = "PullImage"
          Effect   = "Allow"
          Action   = ["ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage"]
          Resource = "arn:${local.partition}:ecr:${try(local.repository[1], "")}:${try(local.repository[0], "")}:repository/${try(local.repository[2], "")}"
        },
      ] : statement if local.repository != null],
    )
  })
}

resource "aws_iam_role_policy" "daemon" {
  count = local.ecs

  name   = "starts"
  role   = aws_iam_role.daemon[0].name
  policy = local.starts_policy
}

locals {
  mounts = {
    state      = { host = "/var/lib/node-agent", container = "/var/lib/node-agent", read_only = false }
    stop       = { host = "/run/node-agent", container = "/run/node-agent", read_only = true }
    host       = { host = "/", container = "/host", read_only = true }
    cgroup     = { host = "/sys/fs/cgroup", container = "/sys/fs/cgroup", read_only = true }
    machine-id = { host = "/etc/machine-id", container = "/etc/machine-id", read_only = true }
  }
}

resource "aws_ecs_task_definition" "daemon" {
  # checkov:skip=CKV_AWS_335: it measures the processes of its host, which it must see; it reads of them what docs/operations.md says.
  # checkov:skip=CKV_AWS_249: execution role and no task role: the agent calls nothing of AWS's.
  count = local.ecs

  family                   = var.name
  requires_compatibilities = ["EC2"]
  network_mode             = "host"
  pid_mode                 = "host"
  cpu                      = 32
  memory                   = 128
  execution_role_arn       = aws_iam_role.daemon[0].arn

  container_definitions = jsonencode([{
    name                   = "node-agent"
    image                  = var.ecs.image
    essential              = true
    command                = ["run"]
    privileged             = false
    readonlyRootFilesystem = true
    user                   = "0"
    # ECS has no name for CAP_BPF and CAP_PERFMON; CAP_SYS_ADMIN holds both. The agent drops all of them once its programs are attached, before it touches the network.
    linuxParameters = { capabilities = { drop = ["ALL"], add = ["SYS_ADMIN", "NET_ADMIN", "DAC_READ_SEARCH"] } }
    # Before Linux 5.11 what programs of eBPF keep counts as locked memory.
    ulimits     = [{ name = "memlock", softLimit = -1, hardLimit = -1 }]
    stopTimeout = 15
    environment = [
      { name = "NODE_AGENT_SWEEPER_URL", value = var.sweeper_url },
      { name = "NODE_AGENT_STATE_DIR", value = "/var/lib/node-agent" },
      { name = "NODE_AGENT_HOST_ROOT", value = "/host" },
      { name = "NODE_AGENT_CONTAINERS", value = "true" },
      { name = "NODE_AGENT_DOCKER_SOCKET", value = "/host/run/docker.sock" },
      { name = "NODE_AGENT_ECS_URL", value = "http://127.0.0.1:51678" },
    ]
    secrets     = [{ name = "NODE_AGENT_JOIN_TOKEN", valueFrom = var.join_token_secret_arn }]
    mountPoints = [for name, mount in local.mounts : { sourceVolume = name, containerPath = mount.container, readOnly = mount.read_only }]
    logConfiguration = {
      logDriver = "awslogs"
      options   = { "awslogs-group" = aws_cloudwatch_log_group.daemon[0].name, "awslogs-region" = local.region, "awslogs-stream-prefix" = "agent" }
    }
  }])

  dynamic "volume" {
    for_each = local.mounts
    content {
      name      = volume.key
      host_path = volume.value.host
    }
  }

  tags = local.tags
}

resource "aws_ecs_service" "daemon" {
  count = local.ecs

  name                               = var.name
  cluster                            = var.ecs.cluster_arn
  task_definition                    = aws_ecs_task_definition.daemon[0].arn
  launch_type                        = "EC2"
  scheduling_strategy                = "DAEMON"
  deployment_minimum_healthy_percent = 0
  deployment_maximum_percent         = 100
  enable_ecs_managed_tags            = true
  propagate_tags                     = "SERVICE"

  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }

  tags = local.tags
}
