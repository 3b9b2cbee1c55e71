# A VPC of its own, unless an existing one is given: private subnets for what runs, public ones for the NAT gateways and, where that is asked for, a public address.

data "aws_availability_zones" "here" {
  # checkov:skip=CKV_AWS_394: two of them are taken, in the order of their names, and local zones are left out. A zone that AWS adds comes behind them.
  count = local.own_network
  state = "available"

  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

locals {
  own_network = var.network == null ? 1 : 0
  # Two zones: a load balancer and a database in two zones need them.
  zones = local.own_network == 1 ? slice(data.aws_availability_zones.here[0].names, 0, 2) : []
  # One NAT gateway is enough for one instance; with two sweepers, neither zone depends on the other.
  nat_zones = var.size == "small" ? slice(local.zones, 0, min(1, length(local.zones))) : local.zones

  vpc_id             = local.own_network == 1 ? aws_vpc.own[0].id : var.network.vpc_id
  private_subnet_ids = local.own_network == 1 ? [for zone in local.zones : aws_subnet.private[zone].id] : var.network.private_subnet_ids
  public_subnet_ids  = local.own_network == 1 ? [for zone in local.zones : aws_subnet.public[zone].id] : var.network.public_subnet_ids
}

resource "aws_vpc" "own" {
  count = local.own_network

  cidr_block           = var.vpc_cidr
  enable_dns_hostnames = true
  enable_dns_support   = true
  tags                 = merge(local.tags, { Name = var.name })
}

# Whatever is put into the VPC without a security group of its own reaches nothing.
resource "aws_default_security_group" "own" {
  count = local.own_network

  vpc_id = aws_vpc.own[0].id
  tags   = merge(local.tags, { Name = "${var.name}-default" })
}

resource "aws_subnet" "private" {
  for_each = toset(local.zones)

  vpc_id                  = aws_vpc.own[0].id
  availability_zone       = each.value
  cidr_block              = cidrsubnet(var.vpc_cidr, 3, index(local.zones, each.value))
  map_public_ip_on_launch = false
  tags                    = merge(local.tags, { Name = "${var.name}-private-${each.value}" })
}

resource "aws_subnet" "public" {
  for_each = toset(local.zones)

  vpc_id                  = aws_vpc.own[0].id
  availability_zone       = each.value
  cidr_block              = cidrsubnet(var.vpc_cidr, 3, 4 + index(local.zones, each.value))
  map_public_ip_on_launch = false
  tags                    = merge(local.tags, { Name = "${var.name}-public-${each.value}" })
}

resource "aws_internet_gateway" "own" {
  count = local.own_network

  vpc_id = aws_vpc.own[0].id
  tags   = merge(local.tags, { Name = var.name })
}

resource "aws_eip" "nat" {
  # checkov:skip=CKV2_AWS_19: it belongs to a NAT gateway, which has no instance.
  for_each = toset(local.nat_zones)

  domain = "vpc"
  tags   = merge(local.tags, { Name = "${var.name}-nat-${each.value}" })
}

resource "aws_nat_gateway" "own" {
  for_each = toset(local.nat_zones)

  allocation_id = aws_eip.nat[each.value].id
  subnet_id     = aws_subnet.public[each.value].id
  tags          = merge(local.tags, { Name = "${var.name}-${each.value}" })

  depends_on = [aws_internet_gateway.own]
}

resource "aws_route_table" "public" {
  count = local.own_network

  vpc_id = aws_vpc.own[0].id
  tags   = merge(local.tags, { Name = "${var.name}-public" })
}

resource "aws_route" "internet" {
  # checkov:skip=CKV2_AWS_35: this is the way out of the public subnets, in which NAT gateways and, where that is asked for, a load balancer are alone.
  count = local.own_network

  route_table_id         = aws_route_table.public[0].id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.own[0].id
}

resource "aws_route_table_association" "public" {
  for_each = toset(local.zones)

  subnet_id      = aws_subnet.public[each.value].id
  route_table_id = aws_route_table.public[0].id
}

resource "aws_route_table" "private" {
  for_each = toset(local.zones)

  vpc_id = aws_vpc.own[0].id
  tags   = merge(local.tags, { Name = "${var.name}-private-${each.value}" })
}

resource "aws_route" "nat" {
  # checkov:skip=CKV2_AWS_35: it does lead to a NAT gateway, which a plan does not know before it is made.
  for_each = toset(local.zones)

  route_table_id         = aws_route_table.private[each.value].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.own[contains(local.nat_zones, each.value) ? each.value : local.nat_zones[0]].id
}

resource "aws_route_table_association" "private" {
  for_each = toset(local.zones)

  subnet_id      = aws_subnet.private[each.value].id
  route_table_id = aws_route_table.private[each.value].id
}

# Free of charge, and keeps packages and binaries off the NAT gateway.
resource "aws_vpc_endpoint" "s3" {
  count = local.own_network

  vpc_id            = aws_vpc.own[0].id
  service_name      = "com.amazonaws.${local.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [for zone in local.zones : aws_route_table.private[zone].id]
  tags              = merge(local.tags, { Name = "${var.name}-s3" })
}

resource "aws_flow_log" "own" {
  count = local.own_network

  vpc_id          = aws_vpc.own[0].id
  traffic_type    = "ALL"
  log_destination = aws_cloudwatch_log_group.flows[0].arn
  iam_role_arn    = aws_iam_role.flows[0].arn
  tags            = local.tags
}

resource "aws_cloudwatch_log_group" "flows" {
  count = local.own_network

  name              = "/${var.name}/flows"
  retention_in_days = var.log_retention_days
  kms_key_id        = local.kms_key_arn
  tags              = local.tags
}

resource "aws_iam_role" "flows" {
  count = local.own_network

  name        = "${var.name}-flows-${local.region}"
  description = "Writes the flow logs of Cloud Sweeper's VPC"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "FlowLogs"
      Effect    = "Allow"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = { StringEquals = { "aws:SourceAccount" = local.account } }
    }]
  })
  tags = local.tags
}

resource "aws_iam_role_policy" "flows" {
  count = local.own_network

  name = "write"
  role = aws_iam_role.flows[0].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "WriteFlows"
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
      Resource = "${aws_cloudwatch_log_group.flows[0].arn}:*"
    }]
  })
}
