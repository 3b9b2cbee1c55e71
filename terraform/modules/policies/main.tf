# Every policy of Cloud Sweeper, as text: the modules that make roles, and the StackSet, take them from here, so that there is one place to review. It makes no resource.
#
# tests/lab/terraform/policies.py holds them to README.md, docs/operations.md and docs/approvals.md, and scenarios hold those to the calls that the sweeper makes.

locals {
  # None of these calls knows a resource: IAM takes "*" alone. A region can be asked for instead.
  read_by_service = {
    Ec2 = concat(
      [
        "ec2:DescribeInstances", "ec2:DescribeVolumes", "ec2:DescribeAddresses", "ec2:DescribeSnapshots", "ec2:DescribeInstanceTypes",
        # What protects a machine from being stopped, and which snapshots an image is made of.
        "ec2:DescribeInstanceAttribute", "ec2:DescribeImages",
      ],
      # Where regions are named, nobody asks which there are.
      length(var.regions) == 0 ? ["ec2:DescribeRegions"] : [],
      var.before_acting ? ["ec2:DescribeRouteTables"] : [],
    )
    AutoScaling = ["autoscaling:DescribeAutoScalingGroups"]
    Batch       = ["batch:DescribeComputeEnvironments", "batch:DescribeJobQueues", "batch:ListJobs", "batch:DescribeJobs"]
    Ecs         = ["ecs:ListClusters", "ecs:ListContainerInstances", "ecs:DescribeContainerInstances", "ecs:DescribeTasks"]
    LoadBalancing = var.before_acting ? [
      "elasticloadbalancing:DescribeTargetGroups", "elasticloadbalancing:DescribeTargetHealth", "elasticloadbalancing:DescribeLoadBalancers",
    ] : []
    CloudWatch = var.cloudwatch ? ["cloudwatch:GetMetricData"] : []
    CloudTrail = var.cloudtrail ? ["cloudtrail:LookupEvents"] : []
  }
  read_condition = length(var.regions) == 0 ? {} : { Condition = { StringEquals = { "aws:RequestedRegion" = var.regions } } }

  read = {
    Version = "2012-10-17"
    Statement = [
      for service, actions in local.read_by_service :
      merge({ Sid = "Read${service}", Effect = "Allow", Action = actions, Resource = "*" }, local.read_condition)
      if length(actions) > 0
    ]
  }

  # The sweeper proves to be itself by its role and by the external id: without the latter, other software that the same role runs could be made to use this one (the confused deputy).
  assume = {
    Sid       = "SweeperByExternalId"
    Effect    = "Allow"
    Principal = { AWS = var.sweeper_principal_arn }
    Action    = "sts:AssumeRole"
    Condition = { StringEquals = { "sts:ExternalId" = var.external_id } }
  }
  # CloudTrail shows beside each call who approved it.
  in_a_name = {
    Sid       = "InTheNameOfWhoApproved"
    Effect    = "Allow"
    Principal = { AWS = var.sweeper_principal_arn }
    Action    = "sts:SetSourceIdentity"
    Condition = { Null = { "sts:SourceIdentity" = "false" } }
  }

  instances = [
    for region in length(var.regions) == 0 ? ["*"] : var.regions : "arn:${var.partition}:ec2:${region}:${var.account_id}:instance/*"
  ]
  allowing_tag = var.allow_tag == null ? {} : { "aws:ResourceTag/${var.allow_tag.key}" = var.allow_tag.value }
  # Status keys alone: whoever could set any tag could allow an instance, or take an exemption away.
  status_keys = {
    "ForAllValues:StringLike" = { "aws:TagKeys" = "cloud-sweeper:stopped-*" }
    # ForAllValues is true of no key at all.
    Null = { "aws:TagKeys" = "false" }
  }

  act_statements = [
    merge(
      { Sid = "StopAndStart", Effect = "Allow", Action = ["ec2:StopInstances", "ec2:StartInstances"], Resource = local.instances },
      length(local.allowing_tag) == 0 ? {} : { Condition = { StringEquals = local.allowing_tag } },
    ),
    {
      Sid       = "SayWhatWasDone"
      Effect    = "Allow"
      Action    = "ec2:CreateTags"
      Resource  = local.instances
      Condition = merge(local.status_keys, length(local.allowing_tag) == 0 ? {} : { StringEquals = local.allowing_tag })
    },
  ]
  # The sweeper leaves exempt machines alone by itself; here IAM does so, too, whatever the sweeper believes. Undoing a stop stays possible.
  exempt = {
    Sid      = "LeaveExemptMachinesAlone"
    Effect   = "Deny"
    Action   = "ec2:StopInstances"
    Resource = local.instances
    Condition = {
      Null                      = { "aws:ResourceTag/cloud-sweeper:exempt" = "false" }
      StringNotEqualsIgnoreCase = { "aws:ResourceTag/cloud-sweeper:exempt" = "false" }
    }
  }
  # What the role may do at most, whatever else somebody attaches to it later.
  act_boundary = [
    { Sid = "StopAndStartAtMost", Effect = "Allow", Action = ["ec2:StopInstances", "ec2:StartInstances"], Resource = local.instances },
    { Sid = "StatusTagsAtMost", Effect = "Allow", Action = "ec2:CreateTags", Resource = local.instances, Condition = local.status_keys },
    local.exempt,
  ]
}
