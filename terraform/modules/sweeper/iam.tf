# Who the sweeper is. It reads its own account by its own role, and every other one by a role there; it acts by the act roles alone.

module "policies" {
  source = "../policies"

  partition             = local.partition
  account_id            = local.account
  regions               = var.regions
  cloudwatch            = var.cloudwatch
  cloudtrail            = var.cloudtrail
  before_acting         = length(var.act.roles) > 0
  sweeper_principal_arn = local.role_arn
  external_id           = "not-used-here"
}

locals {
  role_name = "${var.name}-sweeper"
  # Known before the role is made, so that member accounts can name it in the same run.
  role_arn  = "arn:${local.partition}:iam::${local.account}:role/${local.role_name}"
  read_arns = [for account in var.accounts : account.role_arn]
  act_arns  = [for role in var.act.roles : role.role_arn]

  own_statements = concat(
    [{ Sid = "Prices", Effect = "Allow", Action = "pricing:GetProducts", Resource = "*" }],
    length(local.read_arns) + length(local.act_arns) == 0 ? [] : [
      { Sid = "AssumeNamedRoles", Effect = "Allow", Action = "sts:AssumeRole", Resource = concat(local.read_arns, local.act_arns) },
    ],
    # Whose names the act roles' sessions carry, so that CloudTrail shows who approved.
    length(local.act_arns) == 0 ? [] : [
      { Sid = "NameWhoApproved", Effect = "Allow", Action = "sts:SetSourceIdentity", Resource = local.act_arns },
    ],
    var.own_account ? jsondecode(module.policies.read).Statement : [],
  )
  own_policy = jsonencode({ Version = "2012-10-17", Statement = local.own_statements })

  # Secrets: read these, and no other.
  secret_statements = concat(
    length(local.secret_files) == 0 ? [] : [
      { Sid = "ReadOwnSecrets", Effect = "Allow", Action = "secretsmanager:GetSecretValue", Resource = values(local.secret_files) },
    ],
    [{ Sid = "DecryptSecrets", Effect = "Allow", Action = "kms:Decrypt", Resource = local.secret_keys, Condition = { StringEquals = { "kms:ViaService" = "secretsmanager.${local.region}.amazonaws.com" } } }],
  )
}

resource "aws_iam_role" "sweeper" {
  name        = local.role_name
  description = "Cloud Sweeper itself: reads, and assumes the roles that it was told of"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [merge(
      {
        Sid       = "Runs"
        Effect    = "Allow"
        Principal = { Service = local.small == 1 ? "ec2.amazonaws.com" : "ecs-tasks.amazonaws.com" }
        Action    = "sts:AssumeRole"
      },
      # EC2 does not say for which account it asks.
      local.small == 1 ? {} : { Condition = { StringEquals = { "aws:SourceAccount" = local.account } } },
    )]
  })
  tags = local.tags
}

resource "aws_iam_role_policy" "sweeper" {
  name   = "sweeper"
  role   = aws_iam_role.sweeper.name
  policy = local.own_policy
}

# ---- Size small: the instance ----

resource "aws_iam_instance_profile" "sweeper" {
  count = local.small

  name = local.role_name
  role = aws_iam_role.sweeper.name
  tags = local.tags
}

resource "aws_iam_role_policy" "small" {
  # checkov:skip=CKV_AWS_290: Session Manager's own calls and metrics know no resource; metrics are bound to this sweeper's namespace, and all else to one object, secret, key or log group.
  # checkov:skip=CKV_AWS_355: as above.
  count = local.small

  name = "instance"
  role = aws_iam_role.sweeper.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(local.secret_statements, [
      { Sid = "ReadBinary", Effect = "Allow", Action = "s3:GetObject", Resource = "arn:${local.partition}:s3:::${var.artifact.bucket}/${var.artifact.key}" },
      { Sid = "HandOutFleetToken", Effect = "Allow", Action = "secretsmanager:PutSecretValue", Resource = aws_secretsmanager_secret.join_token.arn },
      {
        Sid       = "EncryptFleetToken"
        Effect    = "Allow"
        Action    = "kms:GenerateDataKey"
        Resource  = local.kms_key_arn
        Condition = { StringEquals = { "kms:ViaService" = "secretsmanager.${local.region}.amazonaws.com" } }
      },
      # Session Manager, in place of ssh: a shell for who may ssm:StartSession, and no other command.
      {
        Sid      = "SessionManager"
        Effect   = "Allow"
        Action   = ["ssm:UpdateInstanceInformation", "ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel", "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel"]
        Resource = "*"
      },
      { Sid = "WriteLogs", Effect = "Allow", Action = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"], Resource = "${aws_cloudwatch_log_group.sweeper.arn}:*" },
      {
        Sid       = "DiskMetric"
        Effect    = "Allow"
        Action    = "cloudwatch:PutMetricData"
        Resource  = "*"
        Condition = { StringEquals = { "cloudwatch:namespace" = local.metrics_namespace } }
      },
    ])
  })
}

# ---- Size highly_available: what starts the tasks ----

locals {
  # Images of a repository of this or another account; any other one needs no right of AWS's.
  images       = local.available == 1 ? [var.image, var.files_image] : []
  repositories = distinct([for image in local.images : regex("^([0-9]{12})\\.dkr\\.ecr\\.([a-z0-9-]+)\\.amazonaws\\.com[a-z.]*/([^@:]+)", image) if can(regex("^[0-9]{12}\\.dkr\\.ecr\\.", image))])
}

resource "aws_iam_role" "starts" {
  count = local.available

  name        = "${var.name}-starts-tasks"
  description = "Fetches the images and secrets of Cloud Sweeper's tasks, and writes their logs"
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

resource "aws_iam_role_policy" "starts" {
  count = local.available

  name = "starts"
  role = aws_iam_role.starts[0].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        { Sid = "ReadSecrets", Effect = "Allow", Action = "secretsmanager:GetSecretValue", Resource = concat(values(local.secret_files), [local.database_secret_arn]) },
        { Sid = "DecryptSecrets", Effect = "Allow", Action = "kms:Decrypt", Resource = local.secret_keys, Condition = { StringEquals = { "kms:ViaService" = "secretsmanager.${local.region}.amazonaws.com" } } },
        { Sid = "WriteLogs", Effect = "Allow", Action = ["logs:CreateLogStream", "logs:PutLogEvents"], Resource = "${aws_cloudwatch_log_group.sweeper.arn}:*" },
      ],
      [for statement in [
        { Sid = "LogInToRepositories", Effect = "Allow", Action = ["ecr:GetAuthorizationToken"], Resource = ["*"] },
        {
          Sid      = "PullImages"
          Effect   = "Allow"
          Action   = ["ecr:BatchCheckLayerAvailability", "ecr:GetDownloadUrlForLayer", "ecr:BatchGetImage"]
          Resource = [for repository in local.repositories : "arn:${local.partition}:ecr:${repository[1]}:${repository[0]}:repository/${repository[2]}"]
        },
      ] : statement if length(local.repositories) > 0],
    )
  })
}

# People run the sweeper's commands in a task that they start for it (terraform/README.md), by ECS Exec. It is one more sweeper and has the same role, because member accounts trust that
# role alone. Tasks of the service cannot be reached so: ECS opens no session in a task that was not started for it.
resource "aws_iam_role_policy" "sessions" {
  # checkov:skip=CKV_AWS_290: the calls of ECS Exec know no resource; they open a way for who may ecs:ExecuteCommand, and none without.
  # checkov:skip=CKV_AWS_355: as above.
  count = local.available

  name = "sessions"
  role = aws_iam_role.sweeper.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "EcsExec"
        Effect   = "Allow"
        Action   = ["ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel", "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel"]
        Resource = "*"
      },
      { Sid = "EncryptSessions", Effect = "Allow", Action = "kms:Decrypt", Resource = local.kms_key_arn },
    ]
  })
}
