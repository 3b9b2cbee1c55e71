//! What protects machines from being stopped or ended. EC2 tells it of one machine and one attribute a call, so it is asked of those
//! alone that are named: the idle ones, a share of them in each sweep.
//!
//! Needs `ec2:DescribeInstanceAttribute`. Its calls have a bucket of their own at EC2, as each of EC2's calls has, so that no list waits
//! for them: 16 a second, eight machines a second.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::InstanceAttributeName;
use aws_smithy_types::error::metadata::ProvideErrorMetadata as _;
use futures::{StreamExt, stream};
use tokio::time::Instant;

use super::{Accounts, place::Place};
use crate::inventory::{Failure, FailureKind, Kind, Outcome, Progress, Protection, Scope, reader::Api};

/// No list, and so without `MaxResults`; nor is it one of the calls whose bucket is smaller without.
const ATTRIBUTE: Api = Api::ec2("ec2:DescribeInstanceAttribute");
/// More would only wait for the same bucket.
const AT_ONCE: usize = 8;

/// What asking came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedProtection {
    /// What EC2 said, by instance id.
    pub answered: BTreeMap<String, Protection>,
    /// Of which machines it could not be read.
    pub failed: BTreeSet<String>,
    /// The last reason why not.
    pub why: Option<Failure>,
    /// Any other machine would fail alike: no more were asked about, and none should be.
    pub is_over: bool,
}

impl AskedProtection {
    /// What the report says of it, if this many machines are known with those that were asked about before.
    #[must_use]
    pub fn outcome(why: Option<Failure>, known: usize) -> Outcome {
        match why {
            None => Outcome::Complete { listed: known },
            Some(why) => Outcome::Failed { what: ATTRIBUTE.name.to_owned(), why },
        }
    }
}

/// Asks about these machines of one scope, by their instance ids, in this order. None is begun after `until`; those that are left then are
/// in neither list. A machine that takes `aws.listing_timeout` for one of its two calls has failed.
pub async fn protection(
    accounts: &Accounts,
    scope: &Scope,
    machines: &[String],
    until: Instant,
    progress: &dyn Progress,
) -> AskedProtection {
    let mut asked = AskedProtection::default();
    let Some(place) = accounts.place(scope) else {
        let message = format!("account {} is not open here", scope.account);
        asked.why = Some(Failure { kind: FailureKind::Credentials, message });
        asked.is_over = true;
        return asked;
    };
    let place = &place;
    // Taken one by one, as places among those under way become free.
    let in_time = machines.iter().cloned().take_while(|_| Instant::now() < until);
    let mut reading = stream::iter(in_time)
        .map(|machine| async move {
            let read = ask(place, &machine).await;
            (machine, read)
        })
        .buffer_unordered(AT_ONCE);
    while let Some((machine, read)) = reading.next().await {
        match read {
            Ok(protection) => {
                asked.answered.insert(machine, protection);
                progress.page(scope, Kind::Protection, 1);
            }
            Err(why) => {
                asked.failed.insert(machine);
                asked.is_over = concerns_all(why.kind);
                asked.why = Some(why);
                if asked.is_over {
                    break;
                }
            }
        }
    }
    asked
}

/// Whether the next machine would fail alike.
const fn concerns_all(kind: FailureKind) -> bool {
    match kind {
        FailureKind::Denied
        | FailureKind::Throttled
        | FailureKind::TimedOut
        | FailureKind::Credentials
        | FailureKind::Unreachable => true,
        FailureKind::Malformed | FailureKind::Provider => false,
    }
}

/// What protects one machine, asked now.
pub(super) async fn ask(place: &Place, machine: &str) -> Result<Protection, Failure> {
    Ok(Protection {
        stop: attribute(place, machine, &InstanceAttributeName::DisableApiStop).await?,
        termination: attribute(place, machine, &InstanceAttributeName::DisableApiTermination).await?,
    })
}

/// None if EC2 did not say, or the machine is no longer there.
async fn attribute(place: &Place, machine: &str, name: &InstanceAttributeName) -> Result<Option<bool>, Failure> {
    let told = place.pages(
        ATTRIBUTE,
        |_| (),
        |_| {
            let request = place.ec2().describe_instance_attribute().instance_id(machine).attribute(name.clone());
            async move {
                let value = match request.send().await {
                    Ok(answer) if *name == InstanceAttributeName::DisableApiStop => answer.disable_api_stop,
                    Ok(answer) => answer.disable_api_termination,
                    // It was ended since it was listed, so that nothing is wrong with the sweep.
                    Err(error) if error.code() == Some("InvalidInstanceID.NotFound") => None,
                    Err(error) => return Err(error.into()),
                };
                Ok((vec![value.and_then(|value| value.value)], None))
            }
        },
    );
    Ok(told.await?.pop().flatten())
}
