//! One account's part of one region, ready to be asked: a client for each service and a bucket for each of the
//! provider's own, made at first use and kept, so that whatever is listed there shares them.

use std::{future::Future, sync::OnceLock};

use super::Session;
use crate::inventory::{
    Failure,
    reader::{Api, Limiters, Page, Reader, Refused, RetryPolicy},
};

/// Where to ask.
#[derive(Debug)]
pub(super) struct Place {
    session: Session,
    region: String,
    retry: RetryPolicy,
    ec2: OnceLock<aws_sdk_ec2::Client>,
    autoscaling: OnceLock<aws_sdk_autoscaling::Client>,
    cloudwatch: OnceLock<aws_sdk_cloudwatch::Client>,
    cloudtrail: OnceLock<aws_sdk_cloudtrail::Client>,
    batch: OnceLock<aws_sdk_batch::Client>,
    ecs: OnceLock<aws_sdk_ecs::Client>,
    load_balancing: OnceLock<aws_sdk_elasticloadbalancingv2::Client>,
    classic_load_balancing: OnceLock<aws_sdk_elasticloadbalancing::Client>,
    limiters: Limiters,
}

impl Place {
    pub(super) fn new(session: Session, region: &str, retry: RetryPolicy) -> Self {
        Self {
            session,
            region: region.to_owned(),
            retry,
            ec2: OnceLock::new(),
            autoscaling: OnceLock::new(),
            cloudwatch: OnceLock::new(),
            cloudtrail: OnceLock::new(),
            batch: OnceLock::new(),
            ecs: OnceLock::new(),
            load_balancing: OnceLock::new(),
            classic_load_balancing: OnceLock::new(),
            limiters: Limiters::default(),
        }
    }

    /// It tries once; whoever calls it through [`Self::pages`] tries again where that helps.
    pub(super) fn ec2(&self) -> &aws_sdk_ec2::Client {
        self.ec2.get_or_init(|| self.session.ec2(&self.region))
    }

    /// Likewise.
    pub(super) fn autoscaling(&self) -> &aws_sdk_autoscaling::Client {
        self.autoscaling.get_or_init(|| self.session.autoscaling(&self.region))
    }

    /// Likewise.
    pub(super) fn cloudwatch(&self) -> &aws_sdk_cloudwatch::Client {
        self.cloudwatch.get_or_init(|| self.session.cloudwatch(&self.region))
    }

    /// Likewise.
    pub(super) fn cloudtrail(&self) -> &aws_sdk_cloudtrail::Client {
        self.cloudtrail.get_or_init(|| self.session.cloudtrail(&self.region))
    }

    /// Likewise.
    pub(super) fn batch(&self) -> &aws_sdk_batch::Client {
        self.batch.get_or_init(|| self.session.batch(&self.region))
    }

    /// Likewise.
    pub(super) fn ecs(&self) -> &aws_sdk_ecs::Client {
        self.ecs.get_or_init(|| self.session.ecs(&self.region))
    }

    /// Likewise.
    pub(super) fn load_balancing(&self) -> &aws_sdk_elasticloadbalancingv2::Client {
        self.load_balancing.get_or_init(|| self.session.load_balancing(&self.region))
    }

    /// Likewise; the load balancers of the first generation.
    pub(super) fn classic_load_balancing(&self) -> &aws_sdk_elasticloadbalancing::Client {
        self.classic_load_balancing.get_or_init(|| self.session.classic_load_balancing(&self.region))
    }

    /// All items of a list, however many pages it has. `call` asks for the page of a token, the first one has none; `told`
    /// hears of the size of each page.
    ///
    /// # Errors
    /// The refusal that nothing helped against. Half a list is never given.
    pub(super) async fn pages<T, F, Fut>(&self, api: Api, told: impl Fn(usize), call: F) -> Result<Vec<T>, Failure>
    where
        F: FnMut(Option<String>) -> Fut,
        Fut: Future<Output = Result<Page<T>, Refused>>,
    {
        let reader = Reader {
            limiter: &self.limiters.of(api),
            credentials: self.session.credentials().generation(),
            retry: &self.retry,
            setting: "aws.listing_timeout",
        };
        reader.pages(api, told, call).await
    }
}
