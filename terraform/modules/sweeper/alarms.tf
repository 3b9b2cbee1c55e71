# Who is told that the sweeper itself is ill. Each alarm rests on a line that the sweeper really logs (tests/lab/terraform/files.py finds each of them in its code), or on a metric of AWS's.

resource "aws_sns_topic" "alarms" {
  count = var.alarm_topic_arn == null ? 1 : 0

  name              = "${var.name}-alarms"
  kms_master_key_id = local.kms_key_arn
  tags              = local.tags
}

resource "aws_sns_topic_subscription" "alarms" {
  for_each = var.alarm_topic_arn == null ? toset(var.alarm_emails) : toset([])

  topic_arn = aws_sns_topic.alarms[0].arn
  protocol  = "email"
  endpoint  = each.value
}

locals {
  alarm_topic_arn = var.alarm_topic_arn != null ? var.alarm_topic_arn : aws_sns_topic.alarms[0].arn

  # By metric: what is counted, over how many seconds, how many times in a row, and from how many on. at_least counts what should be there, at_most what should not.
  log_alarms = {
    CompleteSweeps = {
      pattern     = "\"swept scope=aws\" \"complete=true\""
      description = "No account and region was read as a whole for half an hour: three times what the default schedule takes. See the log for: not read, the sweep failed, nothing can be swept."
      period      = 1800
      times       = 1
      at_least    = 1
    }
    IncompleteSweeps = {
      pattern     = "\"swept scope=\" \"complete=false\""
      description = "Sweeps have been incomplete for half an hour: something may not be read, or does not answer. `sweeper scopes` names it; the log says: not read."
      period      = 600
      times       = 3
      at_least    = null
    }
    MessagesDiscarded = {
      pattern     = "?\"message discarded\" ?\"digest discarded\""
      description = "Messages were not told: a channel refuses them, or was away for too long. `sweeper messages --state failed` says why."
      period      = 300
      times       = 1
      at_least    = null
    }
    DatabaseAway = {
      pattern     = "?\"the store failed\" ?\"the database does not answer\" ?\"the database has not answered for\" ?\"not ready\""
      description = "The database does not answer. Agents keep their heartbeats meanwhile."
      period      = 60
      times       = 5
      at_least    = null
    }
    NothingCarriedOut = {
      pattern     = "?\"all approvals are void, and the kill switch is on\" ?\"the kill switch cannot be read\" ?\"what is approved cannot be carried out now\" ?\"nothing more of its class is done in that account\""
      description = "Approved plans are not carried out: a restored database, a kill switch that cannot be read, or a machine that was stopped and needed. docs/approvals.md says what to do."
      period      = 300
      times       = 1
      at_least    = null
    }
    NodesDisputed = {
      pattern     = "\"node disputed: a join secret was shown for it without its key\""
      description = "Somebody showed a join secret for a machine without its key: a thief, a copy, or the machine itself. `sweeper nodes` and docs/operations.md."
      period      = 300
      times       = 1
      at_least    = null
    }
  }
}

resource "aws_cloudwatch_log_metric_filter" "sweeper" {
  for_each = local.log_alarms

  name           = "${var.name}-${each.key}"
  log_group_name = aws_cloudwatch_log_group.sweeper.name
  pattern        = each.value.pattern

  metric_transformation {
    namespace     = local.metrics_namespace
    name          = each.key
    value         = "1"
    default_value = "0"
  }
}

resource "aws_cloudwatch_metric_alarm" "log" {
  for_each = local.log_alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = local.metrics_namespace
  metric_name         = each.key
  statistic           = "Sum"
  period              = each.value.period
  evaluation_periods  = each.value.times
  comparison_operator = each.value.at_least != null ? "LessThanThreshold" : "GreaterThanThreshold"
  threshold           = each.value.at_least != null ? each.value.at_least : 0
  # A sweeper that logs nothing sweeps nothing.
  treat_missing_data = each.value.at_least != null ? "breaching" : "notBreaching"
  alarm_actions      = [local.alarm_topic_arn]
  ok_actions         = [local.alarm_topic_arn]
  tags               = local.tags

  depends_on = [aws_cloudwatch_log_metric_filter.sweeper]
}

# ---- Size small ----

# A broken host: EC2 starts the instance on another one, with the same volumes and address.
resource "aws_cloudwatch_metric_alarm" "host" {
  count = local.small

  alarm_name          = "${var.name}-host"
  alarm_description   = "The host of the sweeper's instance is broken; EC2 starts the instance on another one by itself."
  namespace           = "AWS/EC2"
  metric_name         = "StatusCheckFailed_System"
  dimensions          = { InstanceId = aws_instance.sweeper[0].id }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  alarm_actions       = ["arn:${local.partition}:automate:${local.region}:ec2:recover", local.alarm_topic_arn]
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "instance" {
  count = local.small

  alarm_name          = "${var.name}-instance"
  alarm_description   = "The sweeper's instance does not answer: reboot it."
  namespace           = "AWS/EC2"
  metric_name         = "StatusCheckFailed_Instance"
  dimensions          = { InstanceId = aws_instance.sweeper[0].id }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 5
  comparison_operator = "GreaterThanThreshold"
  threshold           = 0
  treat_missing_data  = "breaching"
  alarm_actions       = [local.alarm_topic_arn]
  ok_actions          = [local.alarm_topic_arn]
  tags                = local.tags
}

resource "aws_cloudwatch_metric_alarm" "volume" {
  count = local.small

  alarm_name          = "${var.name}-volume"
  alarm_description   = "The volume of the sweeper's database is 80 % full: raise data_volume_gib, then run resize2fs on the instance."
  namespace           = local.metrics_namespace
  metric_name         = "disk_used_percent"
  dimensions          = { InstanceId = aws_instance.sweeper[0].id, path = local.data_dir }
  statistic           = "Maximum"
  period              = 300
  evaluation_periods  = 2
  comparison_operator = "GreaterThanThreshold"
  threshold           = 80
  # No figure means that nobody measures: the instance was not set up, or the CloudWatch agent has ended.
  treat_missing_data = "breaching"
  alarm_actions      = [local.alarm_topic_arn]
  ok_actions         = [local.alarm_topic_arn]
  tags               = local.tags
}

# ---- Size highly_available ----

locals {
  service_alarms = local.available == 0 ? {} : merge(
    {
      fewer-ready = {
        description = "Fewer sweepers are ready than there should be."
        namespace   = "AWS/ApplicationELB", metric = "HealthyHostCount", statistic = "Minimum", period = 60, times = 10
        comparison  = "LessThanThreshold", threshold = var.tasks.count, missing = "breaching"
        dimensions  = { LoadBalancer = aws_lb.sweeper[0].arn_suffix, TargetGroup = aws_lb_target_group.sweeper[0].arn_suffix }
      }
      none-ready = {
        description = "No sweeper is ready. Agents keep their heartbeats meanwhile."
        namespace   = "AWS/ApplicationELB", metric = "HealthyHostCount", statistic = "Maximum", period = 60, times = 3
        comparison  = "LessThanThreshold", threshold = 1, missing = "breaching"
        dimensions  = { LoadBalancer = aws_lb.sweeper[0].arn_suffix, TargetGroup = aws_lb_target_group.sweeper[0].arn_suffix }
      }
      answers-failing = {
        description = "The sweeper answers with 5xx."
        namespace   = "AWS/ApplicationELB", metric = "HTTPCode_Target_5XX_Count", statistic = "Sum", period = 60, times = 5
        comparison  = "GreaterThanThreshold", threshold = 10, missing = "notBreaching"
        dimensions  = { LoadBalancer = aws_lb.sweeper[0].arn_suffix }
      }
      database-disk = {
        description = "The database has less than 5 GiB left, and its disk has grown as far as it may: raise database.max_allocated_gib."
        namespace   = "AWS/RDS", metric = "FreeStorageSpace", statistic = "Minimum", period = 300, times = 3
        comparison  = "LessThanThreshold", threshold = 5 * 1024 * 1024 * 1024, missing = "notBreaching"
        dimensions  = { DBInstanceIdentifier = aws_db_instance.sweeper[0].identifier }
      }
      database-cpu = {
        description = "The database has been above 80 % of its CPU for half an hour: take a larger database.instance_class."
        namespace   = "AWS/RDS", metric = "CPUUtilization", statistic = "Average", period = 300, times = 6
        comparison  = "GreaterThanThreshold", threshold = 80, missing = "notBreaching"
        dimensions  = { DBInstanceIdentifier = aws_db_instance.sweeper[0].identifier }
      }
    },
    # The load balancer's own checks of health are not counted as requests.
    var.alarm_without_heartbeats ? {
      no-heartbeats = {
        description = "Nothing has reached the load balancer for 15 minutes: every agent has fallen silent, or none gets here. A single silent agent is a finding, and told where findings are."
        namespace   = "AWS/ApplicationELB", metric = "RequestCount", statistic = "Sum", period = 300, times = 3
        comparison  = "LessThanThreshold", threshold = 1, missing = "breaching"
        dimensions  = { LoadBalancer = aws_lb.sweeper[0].arn_suffix }
      }
    } : {},
  )
}

resource "aws_cloudwatch_metric_alarm" "service" {
  for_each = local.service_alarms

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.description
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  period              = each.value.period
  evaluation_periods  = each.value.times
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  treat_missing_data  = each.value.missing
  alarm_actions       = [local.alarm_topic_arn]
  ok_actions          = [local.alarm_topic_arn]
  tags                = local.tags
}
