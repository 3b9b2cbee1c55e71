//! Several accounts are read through roles in them; one that cannot be opened is unknown and leaves the others alone.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::ResourceKind;
use std::{collections::BTreeMap, time::Duration};

use lab::aws::{ACCOUNT, Fault, Instance, Moto, REGIONS, Role as Assumable};
use sweeper::inventory::{
    FailureKind, Inventory, Outcome, RetryPolicy, Silent,
    aws::{Options, Role, Session, collect},
};

const GENOMICS: &str = "111122223333";
const IMAGING: &str = "444455556666";
const CLOSED: &str = "777788889999";

fn arn(account: &str) -> String {
    format!("arn:aws:iam::{account}:role/cloud-sweeper")
}

fn role(account: &str) -> Role {
    Role::new(arn(account).parse().unwrap())
}

fn assumable(account: &str) -> Assumable {
    Assumable { arn: arn(account), ..Assumable::default() }
}

fn options(roles: &[Role]) -> Options {
    let retry = RetryPolicy { attempts: 1, base_wait: Duration::from_millis(20), ..RetryPolicy::default() };
    Options { roles: roles.to_vec(), regions: vec!["us-east-1".into()], retry, ..Options::default() }
}

async fn inventory(moto: &Moto, options: &Options) -> Inventory {
    let session = Session::open_with(moto.loader(), options).await.unwrap().unwrap();
    collect(&session, options, &Silent).await
}

/// Account and region of a listing, and what became of it.
type Line<'a> = (Option<&'a str>, Option<&'a str>, Result<usize, FailureKind>);

fn outcomes(inventory: &Inventory) -> Vec<Line<'_>> {
    let outcome = |outcome: &Outcome| match outcome {
        Outcome::Complete { listed } => Ok(*listed),
        Outcome::Failed { why, .. } => Err(why.kind),
    };
    let line = |listing: &sweeper::inventory::Listing| outcome(&listing.outcome);
    let of_instances =
        inventory.listings.iter().filter(|one| one.kind.is_none_or(|kind| kind == ResourceKind::Instance.into()));
    of_instances.map(|one| (one.account.as_deref(), one.region.as_deref(), line(one))).collect()
}

/// `service:Action: kind: words` of each failure.
fn failures(inventory: &Inventory) -> Vec<String> {
    let failure = |outcome: &Outcome| match outcome {
        Outcome::Complete { .. } => None,
        Outcome::Failed { what, why } => Some(format!("{what}: {why}")),
    };
    inventory.listings.iter().filter_map(|listing| failure(&listing.outcome)).collect()
}

#[tokio::test]
async fn the_own_account_and_others_are_read_and_a_refused_role_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    moto.roles(&[Assumable { external_id: Some("our-id".into()), ..assumable(GENOMICS) }, assumable(IMAGING)]).await;
    let mut started = moto.run("us-east-1", &[Instance::default()]).await;
    for (account, region, count) in
        [(GENOMICS, "eu-central-1", 3), (GENOMICS, "us-east-1", 1), (IMAGING, "us-west-2", 2)]
    {
        started.extend(moto.run_in(account, region, &[Instance { count: Some(count), ..Instance::default() }]).await);
    }
    let genomics = Role { external_id: Some("our-id".into()), regions: vec!["eu-central-1".into()], ..role(GENOMICS) };
    let imaging = Role { session_name: "sweeper-of-ours".into(), ..role(IMAGING) };
    let options = Options { regions: Vec::new(), ..options(&[genomics, imaging, role(CLOSED)]) };

    let inventory = inventory(&moto, &options).await;

    let (genomics, imaging, own) = (Some(GENOMICS), Some(IMAGING), Some(ACCOUNT));
    let [eu, east, west] = REGIONS.map(Some);
    assert_eq!(
        outcomes(&inventory),
        [
            (genomics, eu, Ok(3)),
            (own, eu, Ok(0)),
            (own, east, Ok(1)),
            (own, west, Ok(0)),
            (imaging, eu, Ok(0)),
            (imaging, east, Ok(0)),
            (imaging, west, Ok(2)),
            (Some(CLOSED), None, Err(FailureKind::Denied)),
        ]
    );
    assert!(inventory.listings.last().unwrap().kind.is_none(), "nothing is known of any kind");
    let [failure] = failures(&inventory).try_into().unwrap();
    assert!(failure.starts_with(&format!("sts:AssumeRole: denied: role {}: AccessDenied: ", arn(CLOSED))), "{failure}");
    let keys: Vec<String> = inventory.instances.iter().map(|instance| instance.id.to_string()).collect();
    assert_eq!(keys.iter().filter(|key| key.starts_with(&format!("aws:{GENOMICS}:eu-central-1:"))).count(), 3);
    assert_eq!(keys.len(), 6, "of {started:?} all but the one in a region that is not named");

    let calls = moto.calls().await;
    let listed: BTreeMap<&str, usize> =
        calls.iter().filter(|call| call.action == "DescribeInstances").fold(BTreeMap::new(), |mut counts, call| {
            *counts.entry(call.account.as_str()).or_default() += 1;
            counts
        });
    assert_eq!(listed, BTreeMap::from([(GENOMICS, 1), (ACCOUNT, 3), (IMAGING, 3)]), "one page each");
    let names: Vec<&str> = calls.iter().filter_map(|call| call.parameters["RoleSessionName"].as_str()).collect();
    assert_eq!(names.len(), 3, "each role is assumed once: {names:?}");
    assert!(names.contains(&"cloud-sweeper") && names.contains(&"sweeper-of-ours"), "{names:?}");
}

#[tokio::test]
async fn a_role_asks_for_its_external_id() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    moto.roles(&[Assumable { external_id: Some("our-id".into()), ..assumable(GENOMICS) }]).await;
    for (external_id, outcome) in
        [(Some("our-id"), Ok(0)), (Some("their-id"), Err(FailureKind::Denied)), (None, Err(FailureKind::Denied))]
    {
        let role = Role { external_id: external_id.map(str::to_owned), ..role(GENOMICS) };
        let options = Options { own_account: false, ..options(&[role]) };
        let inventory = inventory(&moto, &options).await;
        let region = outcome.is_ok().then_some("us-east-1");
        assert_eq!(outcomes(&inventory), [(Some(GENOMICS), region, outcome)], "{external_id:?}");
    }
}

#[tokio::test]
async fn an_account_that_has_a_role_of_its_own_is_read_through_it_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    moto.run("us-east-1", &[Instance::default()]).await;
    let own = Role { regions: REGIONS.map(str::to_owned).into(), ..role(ACCOUNT) };
    let inventory = inventory(&moto, &options(&[own])).await;
    let listed: Vec<_> =
        outcomes(&inventory).into_iter().map(|(_, region, listed)| (region.unwrap(), listed)).collect();
    assert_eq!(listed, [("eu-central-1", Ok(0)), ("us-east-1", Ok(1)), ("us-west-2", Ok(0))]);
    assert_eq!(inventory.instances.len(), 1);
}

#[tokio::test]
async fn credentials_of_another_account_than_the_arn_names_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    moto.roles(&[Assumable { account: Some(IMAGING.into()), ..assumable(GENOMICS) }]).await;
    let inventory = inventory(&moto, &options(&[role(GENOMICS)])).await;
    assert_eq!(
        outcomes(&inventory),
        [(Some(GENOMICS), None, Err(FailureKind::Credentials)), (Some(ACCOUNT), Some("us-east-1"), Ok(0))]
    );
    let failure = &failures(&inventory)[0];
    assert!(failure.contains(&format!("are of account {IMAGING}, not of {GENOMICS}")), "names both: {failure}");
    assert!(moto.calls().await.iter().all(|call| call.account != IMAGING || call.action == "GetCallerIdentity"));
}

#[tokio::test]
async fn what_fails_in_one_account_is_unknown_there_alone() {
    let folder = tempfile::tempdir().unwrap();
    let moto = Moto::start(folder.path()).await;
    for (service, action) in [("sts", "GetCallerIdentity"), ("ec2", "DescribeRegions")] {
        let fault = Fault {
            service: Some(service.into()),
            action: Some(action.into()),
            account: Some(GENOMICS.into()),
            code: Some("UnauthorizedOperation".into()),
            ..Fault::default()
        };
        moto.fail(&[fault]).await;
        let options = Options { regions: Vec::new(), ..options(&[role(GENOMICS), role(IMAGING)]) };
        let inventory = inventory(&moto, &options).await;
        let outcomes = outcomes(&inventory);
        let (failed, read): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, _, outcome)| outcome.is_err());
        assert_eq!(failed, [(Some(GENOMICS), None, Err(FailureKind::Denied))], "{action}");
        assert_eq!(read.len(), 6, "three regions of each other account: {read:?}");
        assert!(failures(&inventory)[0].starts_with(&format!("{service}:{action}: denied: ")));
    }
}
