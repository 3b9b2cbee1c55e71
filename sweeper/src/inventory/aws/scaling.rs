//! The list of Auto Scaling groups, and what it says of machines.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use aws_sdk_autoscaling::{
    config::{ConfigBag, Intercept, RuntimeComponents, interceptors::AfterDeserializationInterceptorContextRef},
    error::BoxError,
};

use super::{Options, Session, collect::malformed, failure, parse, tokens::Tokens};
use crate::inventory::{AutoScalingGroup, Failure, Instance, Kind, Progress, Scope};

/// Auto Scaling refuses to tell of more groups at once.
const PAGE_SIZE: i32 = 100;

/// One call per 100 groups, their members included; asking for members instead would be one call per 50 of them.
pub(super) async fn groups(
    session: &Session,
    options: &Options,
    scope: &Scope,
    progress: &dyn Progress,
) -> Result<Vec<AutoScalingGroup>, Failure> {
    let client = session.autoscaling(&scope.region);
    let (mut groups, mut tokens) = (Vec::new(), Tokens::default());
    while let Some(token) = tokens.next()? {
        let answer = Answer::default();
        let call = client.describe_auto_scaling_groups().max_records(options.page_size.min(PAGE_SIZE));
        let page = call.set_next_token(token).customize().interceptor(answer.clone()).send().await;
        let page = page.map_err(|error| failure::of(&error))?;
        let told = answer.told()?;
        let records = page.auto_scaling_groups();
        if records.len() != told.len() {
            return Err(malformed("an answer's Auto Scaling groups cannot be told from each other"));
        }
        for (record, told) in records.iter().zip(&told) {
            groups.push(parse::group(scope, record, told).map_err(malformed)?);
        }
        progress.page(scope, Kind::AutoScalingGroup, records.len());
        tokens.follow(page.next_token);
    }
    Ok(groups)
}

/// A machine belongs to the group that lists it. One that no group lists keeps what its tag says: it may have been started
/// between the two lists.
pub(super) fn name_members(instances: &mut [Instance], groups: &[AutoScalingGroup]) {
    let mut group_of = HashMap::new();
    for group in groups {
        for member in group.members.iter().flatten() {
            group_of.insert(member.instance_id.as_str(), group.id.id.as_str());
        }
    }
    for instance in instances {
        let key = instance.resource();
        if let Some(group) = key.as_ref().and_then(|key| group_of.get(key.id.as_str())) {
            instance.autoscaling_group = Some((*group).to_owned());
        }
    }
}

/// Keeps the answer of a call as it came, since the SDK's form of it cannot say which facts were left out.
#[derive(Clone, Debug, Default)]
struct Answer(Arc<Mutex<Vec<u8>>>);

impl Answer {
    fn told(&self) -> Result<Vec<parse::Told>, Failure> {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = parse::told(&body).map_err(|error| malformed(failure::chain(&error)))?;
        told.ok_or_else(|| malformed("an answer has no list of Auto Scaling groups"))
    }
}

impl Intercept for Answer {
    fn name(&self) -> &'static str {
        "Answer"
    }

    /// Of several attempts the last one stays.
    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _settings: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response().body().bytes().unwrap_or_default();
        body.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{Member, Provider, ResourceId, sample};

    #[test]
    fn a_machine_that_either_source_names_is_a_member() {
        let scope = Scope { provider: Provider::Aws, account: "123456789012".into(), region: "eu-central-1".into() };
        let group = |name: &str, members: &[&str]| AutoScalingGroup {
            id: ResourceId::new(&scope, Kind::AutoScalingGroup, name),
            arn: None,
            min_size: None,
            max_size: None,
            desired_capacity: None,
            launch: None,
            members: Some(
                members
                    .iter()
                    .map(|id| Member {
                        instance_id: (*id).to_owned(),
                        lifecycle_state: None,
                        health: None,
                        protected_from_scale_in: None,
                    })
                    .collect(),
            ),
            tags: [].into(),
        };
        let instance = |id: &str, tag: Option<&str>| Instance {
            id: format!("aws:123456789012:eu-central-1:{id}").parse().expect("a node id"),
            autoscaling_group: tag.map(str::to_owned),
            ..sample::instance()
        };
        let mut instances = [
            instance("i-1", None),
            instance("i-2", Some("by-tag")),
            instance("i-3", Some("moved-from")),
            instance("i-4", None),
        ];
        name_members(&mut instances, &[group("workers", &["i-1", "i-3"]), group("empty", &[])]);
        let named = instances.each_ref().map(|instance| instance.autoscaling_group.as_deref());
        assert_eq!(named, [Some("workers"), Some("by-tag"), Some("workers"), None]);
    }
}
