//! What protects machines from being stopped or ended. EC2 tells it of one machine and one attribute a call (50,000 machines would
//! be 100,000 calls, 83 minutes), so it is asked of those alone that are named: the idle ones.
//!
//! Needs `ec2:DescribeInstanceAttribute`. Ended after `aws.listing_timeout` (5 minutes: some 1,200 machines); of the rest it is not known.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::InstanceAttributeName;
use aws_smithy_types::error::metadata::ProvideErrorMetadata as _;
use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::{Accounts, place::Place};
use crate::inventory::{Failure, FailureKind, Kind, Listing, Outcome, Progress, Protection, Scope, reader::Api};

const ATTRIBUTE: Api = Api::ec2_in_one("ec2:DescribeInstanceAttribute");
/// More would only wait for the same bucket.
const AT_ONCE: usize = 4;

/// Asks for these machines of one scope, by their instance ids. Of a machine that is left out it is not known; the listing says why.
pub async fn protection(
    accounts: &Accounts,
    scope: &Scope,
    machines: Vec<String>,
    progress: &dyn Progress,
) -> (BTreeMap<String, Protection>, Listing) {
    let mut known = BTreeMap::new();
    let outcome = match accounts.place(scope) {
        None => {
            let message = format!("account {} is not open here", scope.account);
            Some(Failure { kind: FailureKind::Credentials, message })
        }
        Some(place) => {
            let place = &place;
            let mut reading = stream::iter(machines)
                .map(|machine| async move {
                    let read = ask(place, &machine).await;
                    (machine, read)
                })
                .buffer_unordered(AT_ONCE);
            let mut failed = None;
            let limit = place.listing_timeout();
            let deadline = Instant::now() + limit;
            loop {
                let Ok(next) = timeout_at(deadline, reading.next()).await else {
                    let message = format!("not read of all within {} s (aws.listing_timeout)", limit.as_secs_f32());
                    failed = Some(Failure { kind: FailureKind::TimedOut, message });
                    break;
                };
                let Some((machine, read)) = next else { break };
                match read {
                    // One of which nothing was told is left out, so that it is not counted among what is known.
                    Ok(protection) if protection == Protection::default() => {}
                    Ok(protection) => {
                        known.insert(machine, protection);
                        progress.page(scope, Kind::Protection, 1);
                    }
                    // The others would be refused alike.
                    Err(why) if why.kind == FailureKind::Denied => {
                        failed = Some(why);
                        break;
                    }
                    Err(why) => failed = Some(why),
                }
            }
            failed
        }
    };
    let outcome = match outcome {
        None => Outcome::Complete { listed: known.len() },
        Some(why) => Outcome::Failed { what: ATTRIBUTE.name.to_owned(), why },
    };
    (known, Listing::of(scope, Kind::Protection, outcome))
}

async fn ask(place: &Place, machine: &str) -> Result<Protection, Failure> {
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
