# Size highly_available: PostgreSQL in two zones. Its password is made, kept and rotated by RDS in Secrets Manager; nobody else ever sees it.

locals {
  database_secret_arn = local.available == 1 ? aws_db_instance.sweeper[0].master_user_secret[0].secret_arn : null
  # The password is given to the sweeper beside this address, as PGPASSWORD.
  store_url = local.available == 0 ? null : format(
    "postgres://sweeper@%s:%d/sweeper?%s",
    aws_db_instance.sweeper[0].address,
    aws_db_instance.sweeper[0].port,
    var.database.ca_pem == null ? "sslmode=require" : "sslmode=verify-full&sslrootcert=${local.config_dir}/database-ca.pem",
  )
}

resource "aws_db_subnet_group" "sweeper" {
  count = local.available

  name       = var.name
  subnet_ids = local.private_subnet_ids
  tags       = local.tags
}

resource "aws_db_parameter_group" "sweeper" {
  count = local.available

  name        = "${var.name}-${split(".", var.database.engine_version)[0]}"
  family      = "postgres${split(".", var.database.engine_version)[0]}"
  description = "PostgreSQL of Cloud Sweeper"

  # Nothing speaks to it in clear text.
  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }

  # Changes of the schema, and whatever takes longer than five seconds. Statements as such are not logged: they hold hashes of tokens.
  parameter {
    name  = "log_statement"
    value = "ddl"
  }

  parameter {
    name  = "log_min_duration_statement"
    value = "5000"
  }

  tags = local.tags

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_db_instance" "sweeper" {
  # checkov:skip=CKV_AWS_161: the sweeper knows passwords alone. This one is made and rotated by RDS and known to nobody; a second way in that nothing uses is left closed.
  # checkov:skip=CKV_AWS_293: deletion_protection is an input, true unless somebody takes it away before terraform destroy.
  count = local.available

  identifier     = var.name
  engine         = "postgres"
  engine_version = var.database.engine_version
  instance_class = var.database.instance_class
  db_name        = "sweeper"
  username       = "sweeper"
  port           = 5432

  manage_master_user_password   = true
  master_user_secret_kms_key_id = local.kms_key_arn

  allocated_storage     = var.database.allocated_gib
  max_allocated_storage = var.database.max_allocated_gib
  storage_type          = "gp3"
  storage_encrypted     = true
  kms_key_id            = local.kms_key_arn

  multi_az               = true
  db_subnet_group_name   = aws_db_subnet_group.sweeper[0].name
  vpc_security_group_ids = [aws_security_group.database[0].id]
  publicly_accessible    = false
  parameter_group_name   = aws_db_parameter_group.sweeper[0].name

  backup_retention_period   = var.database.backup_days
  copy_tags_to_snapshot     = true
  delete_automated_backups  = false
  deletion_protection       = var.deletion_protection
  skip_final_snapshot       = false
  final_snapshot_identifier = "${var.name}-final"

  auto_minor_version_upgrade      = true
  enabled_cloudwatch_logs_exports = ["postgresql", "upgrade"]
  monitoring_interval             = 60
  monitoring_role_arn             = aws_iam_role.monitoring[0].arn
  performance_insights_enabled    = true
  performance_insights_kms_key_id = local.kms_key_arn

  tags = local.tags

  # RDS writes to groups that are there, and makes ones that nothing encrypts where they are not.
  depends_on = [aws_cloudwatch_log_group.database]
}

# After a rotation connections that are open go on; a sweeper that cannot open another one is not ready, and its successor is given the new password at its start.
resource "aws_secretsmanager_secret_rotation" "database" {
  # checkov:skip=CKV_AWS_304: database.password_rotation_days is an input, 90 at most.
  count = local.available

  secret_id          = aws_db_instance.sweeper[0].master_user_secret[0].secret_arn
  rotate_immediately = false

  rotation_rules {
    automatically_after_days = var.database.password_rotation_days
  }
}

resource "aws_security_group" "database" {
  count = local.available

  name        = "${var.name}-database"
  description = "PostgreSQL of Cloud Sweeper: the sweeper in, nothing out"
  vpc_id      = local.vpc_id
  tags        = merge(local.tags, { Name = "${var.name}-database" })
}

resource "aws_vpc_security_group_ingress_rule" "database" {
  count = local.available

  security_group_id            = aws_security_group.database[0].id
  description                  = "The sweeper"
  referenced_security_group_id = aws_security_group.sweeper.id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
}

resource "aws_vpc_security_group_egress_rule" "database" {
  count = local.available

  security_group_id            = aws_security_group.sweeper.id
  description                  = "PostgreSQL"
  referenced_security_group_id = aws_security_group.database[0].id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
}

resource "aws_iam_role" "monitoring" {
  count = local.available

  name        = "${var.name}-monitoring-${local.region}"
  description = "RDS writes what the database's host does"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "Monitoring"
      Effect    = "Allow"
      Principal = { Service = "monitoring.rds.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
  tags = local.tags
}

resource "aws_iam_role_policy_attachment" "monitoring" {
  count = local.available

  role       = aws_iam_role.monitoring[0].name
  policy_arn = "arn:${local.partition}:iam::aws:policy/service-role/AmazonRDSEnhancedMonitoringRole"
}
