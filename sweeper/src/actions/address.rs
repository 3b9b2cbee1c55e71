//! Gives a public address back. Nobody runs on it who could be asked: what EC2 says of it is read within the five seconds before the call leaves.

use super::{
    ActError, Deadline, Executor,
    carry::{FRESH, WOULD_NOT},
    ec2::{self, Called},
    facts::{Decided, Facts},
    own, provider,
};
use crate::{
    inventory::aws::{self, Accounts, OneAddress},
    store::{Action, actions::Told, moment::Known},
    sweep::was_unused,
};
use guards::{
    act::{OnAddress, Subject},
    action::{Event, State},
};
use jiff::Timestamp;
use model::ResourceKey;

const GONE: &str = "the account does not have the address any more";

/// What EC2 and the kept lists say of an address now.
struct Now {
    address: OneAddress,
    unused_since: Option<Timestamp>,
}

impl Now {
    /// Asks every guard. None if the plan or the address cannot be put into their words: then nothing is done either.
    fn decide(self, facts: &Facts<'_>, known: &Known) -> Option<Decided> {
        let OneAddress { address, reverse_name, offered_to } = self.address;
        let address = address.release_facts(reverse_name, offered_to)?;
        let subject = Subject::Address(OnAddress { facts: &address, unused_since: self.unused_since });
        facts.decide(known, subject)
    }
}

impl Executor {
    /// Reads what EC2 says of an address, and releases it if nothing speaks against that.
    pub(super) async fn release(&self, action: &mut Action) -> Result<(), ActError> {
        let on = action.resource.clone();
        let read = async {
            let accounts = self.sessions.account(&on).await?;
            let address = self.address(&accounts, &on).await?;
            Ok((accounts, address))
        };
        let (accounts, Some(before)) = self.held(action, read).await? else {
            return self.refuse(action, GONE).await;
        };
        let is_own = own::is_own_address(&self.config, before.address.public_ipv4.as_deref()).await;
        let alike = self.store.count_of_account(on.kind.into(), &on.account).await?;
        let client = match self.sessions.acting(&self.config, &on, &action.asked_by).await {
            Ok(client) => client,
            Err(why) => return self.refuse(action, why.to_string()).await,
        };
        self.tell(action, Event::Asked, Told::default()).await?;
        let Some((_, call)) = self.planned(action).await? else { return Err(ActError::TakenOver) };
        let deadline = Deadline::after(FRESH);
        // As of a machine, the second dry run opens the way that the call takes.
        let (address, dry_run) = futures::join!(self.address(&accounts, &on), ec2::dry_run(&client, call, &on.id));
        let Some(address) = address? else {
            return self.refuse(action, GONE).await;
        };
        if !matches!(dry_run, Called::Accepted { .. }) {
            return self.refuse(action, WOULD_NOT).await;
        }
        let unused = self.store.lasting_since(on.kind.into(), std::slice::from_ref(&on), was_unused).await?;
        let policy = self.policy()?;
        let facts = Facts {
            policy: &policy,
            alike: u32::try_from(alike).unwrap_or(u32::MAX),
            is_own,
            is_switched_on: self.is_switched_on(&on, call),
        };
        let now = Now { address, unused_since: unused.get(&on).copied() };
        self.decide(action, |known| now.decide(&facts, known)).await?;
        if action.state != State::Calling {
            return Ok(());
        }
        let called = ec2::call(&client, call, &on.id, deadline).await;
        self.called(action, called).await
    }

    /// One address, as EC2 has it now; none if the account does not have it any more.
    async fn address(&self, accounts: &Accounts, on: &ResourceKey) -> Result<Option<OneAddress>, ActError> {
        let read = aws::one_address(accounts, &provider::scope(on)?, &on.id).await;
        read.map_err(|why| ActError::Provider { what: "reading the address", why })
    }

    /// Where an address is, in a word; the same words as [`model::plan::Action::ends_in`].
    pub(super) async fn address_state(&self, accounts: &Accounts, on: &ResourceKey) -> Result<String, ActError> {
        let read = aws::address(accounts, &provider::scope(on)?, &on.id).await;
        let read = read.map_err(|why| ActError::Provider { what: "reading the address", why })?;
        Ok(if read.is_some() { "allocated" } else { "released" }.to_owned())
    }
}
