//! A machine's provider, as far as actions have to do with it: who is asked, and who acts there.

use super::{
    ActError, Deadline, batch, compute_engine,
    ec2::{self, Called},
};
use crate::{
    inventory::{
        Failure, InstanceState, Scope,
        aws::{self, Accounts},
        gcp,
    },
    store::{Action, Direction},
};
use model::{Provider, ResourceKey, ResourceKind, plan::Action as Call};
use uuid::Uuid;

/// Whoever is asked where something is, with the credentials that read.
#[derive(Debug)]
pub(super) enum Asked {
    Aws(Box<Accounts>),
    Google(gcp::Session),
}

/// Whoever does something there, with the credentials that act.
#[derive(Debug)]
pub(super) enum Acting {
    Ec2(Box<ec2::Clients>),
    ComputeEngine(compute_engine::Client),
}

/// One machine, as its provider has it now.
#[derive(Debug)]
pub(super) enum OneMachine {
    Ec2(Box<aws::OneMachine>),
    ComputeEngine(Box<gcp::OneMachine>),
}

/// What a provider is called where it says something of a machine.
pub(super) fn called(on: &ResourceKey) -> &'static str {
    match (on.provider, on.kind) {
        (Provider::Gcp, _) => "Google Cloud",
        (_, ResourceKind::BatchJob) => "AWS Batch",
        _ => "EC2",
    }
}

/// The scope of a resource of AWS.
pub(super) fn scope(on: &ResourceKey) -> Result<Scope, ActError> {
    let ResourceKey { provider, account, location: region, .. } = on.clone();
    if provider == Provider::Aws { Ok(Scope { provider, account, region }) } else { Err(ActError::Elsewhere) }
}

/// Its provider has no such machine any more.
pub(super) fn gone(action: &Action) -> String {
    let what = if action.resource.kind == ResourceKind::BatchJob { "job" } else { "machine" };
    format!("{} does not know the {what} any more", called(&action.resource))
}

fn provider(what: &'static str) -> impl Fn(Failure) -> ActError {
    move |why| ActError::Provider { what, why }
}

impl Asked {
    /// The state of a machine, in EC2's words; none if it is there no more.
    pub(super) async fn state(&self, on: &ResourceKey) -> Result<Option<InstanceState>, ActError> {
        let read = match self {
            Self::Aws(accounts) => aws::instance(accounts, &scope(on)?, &on.id).await,
            Self::Google(session) => gcp::instance(session, on).await,
        };
        Ok(read.map_err(provider("reading the machine"))?.map(|instance| instance.state))
    }

    /// One machine, as its provider has it now; none if it is there no more.
    pub(super) async fn machine(&self, on: &ResourceKey) -> Result<Option<OneMachine>, ActError> {
        let read = match self {
            Self::Aws(accounts) => {
                let read = aws::one_machine(accounts, &scope(on)?, &on.id).await;
                read.map(|machine| machine.map(|machine| OneMachine::Ec2(Box::new(machine))))
            }
            Self::Google(session) => {
                let read = gcp::one_machine(session, on).await;
                read.map(|machine| machine.map(|machine| OneMachine::ComputeEngine(Box::new(machine))))
            }
        };
        read.map_err(provider("reading the machine"))
    }

    /// The error that a call ended with which its provider had taken: its code, and in words. EC2 tells before it takes one.
    pub(super) async fn ended_with(&self, action: &Action) -> Result<Option<(String, String)>, ActError> {
        let (Self::Google(session), Some(operation)) = (self, &action.request_id) else { return Ok(None) };
        let read = gcp::ended_with(session, &action.resource, operation).await;
        read.map_err(provider("reading what became of the call"))
    }
}

impl Acting {
    /// Asks whether it would do so: by EC2's dry run, or by what Google says of the right to it.
    pub(super) async fn dry_run(&self, call: Call, on: &ResourceKey) -> Called {
        match self {
            Self::Ec2(client) if call == Call::TerminateJob => batch::is_heard(client, on).await,
            Self::Ec2(client) => ec2::dry_run(client, call, &on.id).await,
            Self::ComputeEngine(client) => client.may(call, on).await,
        }
    }

    /// Makes the call of an action, if it can leave before the deadline.
    pub(super) async fn call(&self, call: Call, action: &Action, deadline: Deadline) -> Called {
        match self {
            Self::Ec2(client) => ec2::call(client, call, &action.resource.id, deadline).await,
            Self::ComputeEngine(client) => client.call(call, &action.resource, id(action), deadline).await,
        }
    }
}

/// The same for the same try, and no other's.
fn id(action: &Action) -> Uuid {
    let direction = match action.direction {
        Direction::Do => "do",
        Direction::Undo => "undo",
    };
    let text = format!("{} {direction} {}", action.plan, action.attempt);
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
}
