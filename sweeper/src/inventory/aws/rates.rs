//! What AWS allows: how often each call may be made, as documented.

use crate::inventory::reader::Api;

impl Api {
    /// A call of EC2 that lists: each has a bucket of its own of 100, refilled by 20 a second, provided that it sends
    /// `MaxResults` or a filter; a plain one has half of both.
    /// <https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html>
    pub(super) const fn ec2(name: &'static str) -> Self {
        Self::new(name, name, 20, 100)
    }

    /// One that lists everything in one answer, for which there is no `MaxResults`.
    pub(super) const fn ec2_in_one(name: &'static str) -> Self {
        Self::new(name, name, 10, 50)
    }

    /// A call of Auto Scaling: all of them share one bucket, whose numbers are not published; taken for half of EC2's.
    /// <https://docs.aws.amazon.com/autoscaling/ec2/APIReference/Welcome.html>
    pub(super) const fn autoscaling(name: &'static str) -> Self {
        Self::new(name, "autoscaling", 10, 50)
    }

    /// A call of Batch: all of them together are allowed 50 a second, and no burst above that is documented.
    /// <https://repost.aws/knowledge-center/aws-batch-requests-error>
    pub(super) const fn batch(name: &'static str) -> Self {
        Self::new(name, "batch", 50, 50)
    }

    /// A call of ECS that reads what a cluster holds (its machines and tasks): these share a bucket.
    /// <https://docs.aws.amazon.com/AmazonECS/latest/APIReference/request-throttling.html>
    pub(super) const fn ecs(name: &'static str) -> Self {
        Self::new(name, "ecs", 20, 100)
    }

    /// A call of ECS that reads clusters, which has a bucket of its own; taken for half of the other one.
    pub(super) const fn ecs_clusters(name: &'static str) -> Self {
        Self::new(name, "ecs_clusters", 10, 50)
    }

    /// `GetMetricData` of CloudWatch: 50 calls a second, but at most 90,000 data points, and a page may hold 100,800 of them. So
    /// one page a second; AWS does not say how many may come at once.
    /// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html>
    pub(super) const fn cloudwatch(name: &'static str) -> Self {
        Self::new(name, name, 1, 10)
    }

    /// A call of Elastic Load Balancing that describes: all of an account and region share a bucket of 40, one for each of its two versions. How fast it is
    /// filled again is not published; taken for 10 a second.
    /// <https://docs.aws.amazon.com/elasticloadbalancing/latest/userguide/elb-api-throttling.html>
    pub(super) const fn load_balancing(name: &'static str) -> Self {
        Self::new(name, "elasticloadbalancing", 10, 40)
    }

    /// `LookupEvents` of CloudTrail: two calls a second, which nobody may have raised.
    /// <https://docs.aws.amazon.com/awscloudtrail/latest/userguide/WhatIsCloudTrail-Limits.html>
    pub(super) const fn cloudtrail(name: &'static str) -> Self {
        Self::new(name, name, 2, 2)
    }
}
