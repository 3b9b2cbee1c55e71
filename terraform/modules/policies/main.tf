# Every policy of Cloud Sweeper, as text: the modules that make roles, and the StackSet, take them from here, so that there is one place to review. It makes no resource.
#
# tests/lab/terraform/policies.py holds them to README.md, docs/operations.md and docs/approvals.md, and scenarios hold those to the calls that the sweeper makes.

locals {
  # One statement for each API. "*" stands where a call knows no resource; of those that do, any of this account's.
  read_statements = concat(
    [
      {
        Sid = "ReadMachines"
        Action = concat(
          ["ec2:DescribeInstances", "ec2:DescribeVolumes", "ec2:DescribeAddresses", "ec2:DescribeSnapshots", "ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeImages", "ec2:DescribeSpotPriceHistory"],
          # Where regions are named, nobody asks which there are.
          length(var.regions) == 0 ? ["ec2:DescribeRegions"] : [],
          # What rests on a machine, and what lists do not tell of an address.
          var.before_acting ? ["ec2:DescribeRouteTables", "ec2:DescribeAddressesAttribute", "ec2:DescribeAddressTransfers"] : [],
        )
        Resource = ["*"]
      },
      # Whether it is protected from being stopped or ended.
      { Sid = "ReadProtection", Action = ["ec2:DescribeInstanceAttribute"], Resource = ["arn:${var.partition}:ec2:*:${var.account_id}:instance/*"] },
      # Whether a group's machines are being replaced, before one of them is ended.
      { Sid = "ReadGroups", Action = concat(["autoscaling:DescribeAutoScalingGroups"], var.before_acting ? ["autoscaling:DescribeInstanceRefreshes"] : []), Resource = ["*"] },
      { Sid = "ReadBatch", Action = ["batch:DescribeComputeEnvironments", "batch:DescribeJobQueues", "batch:ListJobs", "batch:DescribeJobs"], Resource = ["*"] },
      { Sid = "ListClusters", Action = ["ecs:ListClusters"], Resource = ["*"] },
      {
        Sid      = "ReadClusters"
        Action   = ["ecs:ListContainerInstances", "ecs:DescribeContainerInstances", "ecs:DescribeTasks"]
        Resource = [for kind in ["cluster", "container-instance", "task"] : "arn:${var.partition}:ecs:*:${var.account_id}:${kind}/*"]
      },
    ],
    [for statement in [
      { Sid = "ReadWhatRestsOnMachines", Action = ["elasticloadbalancing:DescribeTargetGroups", "elasticloadbalancing:DescribeTargetHealth", "elasticloadbalancing:DescribeLoadBalancers"], Resource = ["*"] },
    ] : statement if var.before_acting],
    [for statement in [{ Sid = "ReadMetrics", Action = ["cloudwatch:GetMetricData"], Resource = ["*"] }] : statement if var.cloudwatch],
    [for statement in [{ Sid = "ReadTrail", Action = ["cloudtrail:LookupEvents"], Resource = ["*"] }] : statement if var.cloudtrail],
  )
  read_condition = length(var.regions) == 0 ? {} : { Condition = { StringEquals = { "aws:RequestedRegion" = var.regions } } }

  read = {
    Version   = "2012-10-17"
    Statement = [for statement in local.read_statements : merge({ Effect = "Allow" }, statement, local.read_condition)]
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
  addresses = [for instances in local.instances : replace(instances, ":instance/", ":elastic-ip/")]
  releases  = var.release_tag != null
  # What nothing undoes always asks for a tag.
  release = [for statement in [{
    Sid       = "ReleaseAddresses"
    Effect    = "Allow"
    Action    = "ec2:ReleaseAddress"
    Resource  = local.addresses
    Condition = { StringEquals = { "aws:ResourceTag/${try(var.release_tag.key, "")}" = try(var.release_tag.value, "") } }
  }] : statement if local.releases]
  allowing_tag = var.allow_tag == null ? {} : { "aws:ResourceTag/${var.allow_tag.key}" = var.allow_tag.value }
  # Status keys alone: whoever could set any tag could allow an instance, or take an exemption away.
  status_keys = {
    "ForAllValues:StringLike" = { "aws:TagKeys" = "cloud-sweeper:stopped-*" }
    # ForAllValues is true of no key at all.
    Null = { "aws:TagKeys" = "false" }
  }

  volumes   = [for instances in local.instances : replace(instances, ":instance/", ":volume/")]
  snapshots = [for region in length(var.regions) == 0 ? ["*"] : var.regions : "arn:${var.partition}:ec2:${region}::snapshot/*"]
  deletes   = var.delete_tag != null
  delete = [for statement in [
    {
      Sid       = "CopyAndDeleteVolumes"
      Effect    = "Allow"
      Action    = ["ec2:CreateSnapshot", "ec2:DeleteVolume"]
      Resource  = local.volumes
      Condition = { StringEquals = { "aws:ResourceTag/${try(var.delete_tag.key, "")}" = try(var.delete_tag.value, "") } }
    },
    # Each copy says for which plan it was made, and by that is found again.
    {
      Sid      = "MakeCopies"
      Effect   = "Allow"
      Action   = "ec2:CreateSnapshot"
      Resource = local.snapshots
      Condition = {
        "ForAllValues:StringEquals" = { "aws:TagKeys" = ["cloud-sweeper:plan", "cloud-sweeper:snapshot-for"] }
        Null                        = { "aws:RequestTag/cloud-sweeper:plan" = "false" }
      }
    },
    { Sid = "TagCopiesAsTheyAreMade", Effect = "Allow", Action = "ec2:CreateTags", Resource = local.snapshots, Condition = { StringEquals = { "ec2:CreateAction" = "CreateSnapshot" } } },
  ] : statement if local.deletes]

  groups = [
    for region in length(var.regions) == 0 ? ["*"] : var.regions : "arn:${var.partition}:autoscaling:${region}:${var.account_id}:autoScalingGroup:*:autoScalingGroupName/*"
  ]
  ends = var.end_tag != null
  end = [for statement in [
    {
      Sid       = "EndMembersOfGroups"
      Effect    = "Allow"
      Action    = "autoscaling:TerminateInstanceInAutoScalingGroup"
      Resource  = local.groups
      Condition = { StringEquals = { "aws:ResourceTag/${try(var.end_tag.key, "")}" = try(var.end_tag.value, "") } }
    },
    # Auto Scaling has no dry run. Its answer to this is the same for everybody: by it the role is known to be heard, and the way is open that the call takes.
    { Sid = "BeHeardByAutoScaling", Effect = "Allow", Action = "autoscaling:DescribeTerminationPolicyTypes", Resource = ["*"] },
  ] : statement if local.ends]

  jobs = [for region in length(var.regions) == 0 ? ["*"] : var.regions : "arn:${var.partition}:batch:${region}:${var.account_id}:job/*"]
  # A stuck job is terminated only if it carries the tag. Batch has no dry run: by reading the job's tags the role is known to be heard, and the way is open that the call takes.
  terminates = var.terminate_tag != null
  terminate = [for statement in [{
    Sid       = "TerminateJobs"
    Effect    = "Allow"
    Action    = ["batch:TerminateJob", "batch:ListTagsForResource"]
    Resource  = local.jobs
    Condition = { StringEquals = { "aws:ResourceTag/${try(var.terminate_tag.key, "")}" = try(var.terminate_tag.value, "") } }
  }] : statement if local.terminates]

  act_statements = concat([
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
  ], local.release, local.delete, local.end, local.terminate)
  # The sweeper leaves what is exempt alone by itself; here IAM does so, too, whatever the sweeper believes. Undoing a stop stays possible.
  exempt = {
    Sid      = "LeaveExemptAlone"
    Effect   = "Deny"
    Action   = concat(["ec2:StopInstances"], local.releases ? ["ec2:ReleaseAddress"] : [], local.deletes ? ["ec2:DeleteVolume"] : [], local.ends ? ["autoscaling:TerminateInstanceInAutoScalingGroup"] : [], local.terminates ? ["batch:TerminateJob"] : [])
    Resource = concat(local.instances, local.releases ? local.addresses : [], local.deletes ? local.volumes : [], local.ends ? local.groups : [], local.terminates ? local.jobs : [])
    Condition = {
      Null                      = { "aws:ResourceTag/cloud-sweeper:exempt" = "false" }
      StringNotEqualsIgnoreCase = { "aws:ResourceTag/cloud-sweeper:exempt" = "false" }
    }
  }
  # What the role may do at most, whatever else somebody attaches to it later.
  act_boundary = concat([
    { Sid = "StopAndStartAtMost", Effect = "Allow", Action = ["ec2:StopInstances", "ec2:StartInstances"], Resource = local.instances },
    { Sid = "StatusTagsAtMost", Effect = "Allow", Action = "ec2:CreateTags", Resource = local.instances, Condition = local.status_keys },
    local.exempt,
  ], local.release, local.delete, local.end, local.terminate)
}
