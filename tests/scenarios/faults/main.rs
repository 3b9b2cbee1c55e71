//! What AWS refuses is waited out, renewed or begun anew where that helps, and named where it does not. A listing that
//! failed closes no finding.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod prices;
mod protection;
mod spot;

use model::ResourceKind;
use std::{collections::BTreeSet, path::Path, time::Duration};

use heartbeat::NodeId;
use jiff::Timestamp;
use lab::{
    aws::{ACCOUNT, Call, Fault, Instance, Moto, REGIONS, Role as Assumable},
    sample,
    sweeper::Sweeper,
};
use serde_json::Value;
use sweeper::{
    inventory::{
        FailureKind, Inventory, Listing, Outcome, RetryPolicy, Silent,
        aws::{Options, Role, Session, collect},
    },
    store::{Store, TokenHash},
};

const OTHER: &str = "111122223333";
const ROLE: &str = "arn:aws:iam::111122223333:role/cloud-sweeper";
const REGION: &str = "us-east-1";

/// Four attempts, and hardly a wait between them.
fn options(regions: &[&str]) -> Options {
    Options {
        regions: regions.iter().map(|&region| region.to_owned()).collect(),
        retry: RetryPolicy { attempts: 4, base_wait: Duration::from_millis(20), ..RetryPolicy::default() },
        ..Options::default()
    }
}

async fn inventory(moto: &Moto, options: &Options) -> Inventory {
    let session = Session::open_with(moto.loader(), options).await.unwrap().unwrap();
    collect(&session, options, &Silent).await
}

/// What was listed of instances, or failed before anything was listed.
fn of_instances(inventory: &Inventory) -> impl Iterator<Item = &Listing> {
    inventory.listings.iter().filter(|listing| listing.kind.is_none_or(|kind| kind == ResourceKind::Instance.into()))
}

/// What became of each region of the own account, in their order.
fn outcomes(inventory: &Inventory) -> Vec<Result<usize, FailureKind>> {
    let outcome = |outcome: &Outcome| match outcome {
        Outcome::Complete { listed } => Ok(*listed),
        Outcome::Failed { why, .. } => Err(why.kind),
    };
    of_instances(inventory).map(|listing| outcome(&listing.outcome)).collect()
}

/// A fault of DescribeInstances; `page` is the token of the one that it hits.
fn fault(code: &str, page: Option<&str>) -> Fault {
    Fault {
        service: Some("ec2".into()),
        action: Some("DescribeInstances".into()),
        code: (!code.is_empty()).then(|| code.to_owned()),
        parameters: page.map(|token| ("NextToken".to_owned(), token.to_owned())).into_iter().collect(),
        ..Fault::default()
    }
}

async fn listings(moto: &Moto) -> Vec<Call> {
    moto.calls().await.into_iter().filter(|call| call.action == "DescribeInstances").collect()
}

/// The page tokens that were asked, in their order.
async fn tokens(moto: &Moto) -> Vec<String> {
    let token = |call: &Call| call.parameters["NextToken"].as_str().unwrap_or("first").to_owned();
    listings(moto).await.iter().map(token).collect()
}

/// Eight instances on pages of three, in the account.
async fn three_pages(folder: &Path, account: &str) -> Moto {
    let moto = Moto::start(folder).await;
    moto.run_in(account, REGION, &[Instance { count: Some(8), ..Instance::default() }]).await;
    moto.page_size(3).await;
    moto
}

#[tokio::test]
async fn throttling_and_a_failing_server_are_waited_out_in_the_middle_of_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let moto = three_pages(folder.path(), ACCOUNT).await;
    moto.fail(&[
        Fault { status: Some(503), times: Some(2), ..fault("RequestLimitExceeded", Some("after-3")) },
        Fault { status: Some(500), times: Some(1), ..fault("InternalError", Some("after-6")) },
    ])
    .await;
    assert_eq!(outcomes(&inventory(&moto, &options(&[REGION])).await), [Ok(8)]);
    assert_eq!(tokens(&moto).await, ["first", "after-3", "after-3", "after-3", "after-6", "after-6"]);
    let sizes: BTreeSet<String> =
        listings(&moto).await.iter().map(|call| call.parameters["MaxResults"].to_string()).collect();
    assert_eq!(sizes, BTreeSet::from(["\"1000\"".to_owned()]), "each call says how much it takes");
}

#[tokio::test]
async fn throttling_that_does_not_end_fails_after_the_attempts() {
    let folder = tempfile::tempdir().unwrap();
    let moto = three_pages(folder.path(), ACCOUNT).await;
    moto.fail(&[Fault { status: Some(503), ..fault("RequestLimitExceeded", Some("after-3")) }]).await;
    let inventory = inventory(&moto, &options(&[REGION])).await;
    assert_eq!(outcomes(&inventory), [Err(FailureKind::Throttled)]);
    assert!(inventory.instances.is_empty(), "half a list is none");
    assert_eq!(tokens(&moto).await.len(), 1 + 4);
}

#[tokio::test]
async fn credentials_that_expire_in_the_middle_are_renewed_and_the_same_page_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let moto = three_pages(folder.path(), OTHER).await;
    moto.fail(&[Fault { expire: true, times: Some(1), ..fault("", Some("after-3")) }]).await;
    let roles = vec![Role::new(ROLE.parse().unwrap())];
    let options = Options { own_account: false, roles, ..options(&[REGION]) };

    assert_eq!(outcomes(&inventory(&moto, &options).await), [Ok(8)]);

    assert_eq!(tokens(&moto).await, ["first", "after-3", "after-3", "after-6"]);
    let keys: Vec<String> = listings(&moto).await.into_iter().map(|call| call.access_key).collect();
    assert!(keys[0] == keys[1] && keys[1] != keys[2] && keys[2] == keys[3], "{keys:?}");
    assert_eq!(moto.calls().await.iter().filter(|call| call.action == "AssumeRole").count(), 2);
}

#[tokio::test]
async fn credentials_that_cannot_be_renewed_fail_their_listing() {
    let folder = tempfile::tempdir().unwrap();
    let moto = three_pages(folder.path(), ACCOUNT).await;
    moto.fail(&[Fault { expire: true, times: Some(1), ..fault("", Some("after-6")) }]).await;
    // The environment's credentials are the same ones however often one looks.
    assert_eq!(outcomes(&inventory(&moto, &options(&[REGION])).await), [Err(FailureKind::Credentials)]);
    assert_eq!(tokens(&moto).await, ["first", "after-3", "after-6", "after-6"]);
}

#[tokio::test]
async fn a_page_token_that_is_not_taken_any_more_starts_the_list_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let moto = three_pages(folder.path(), ACCOUNT).await;
    for code in ["InvalidNextToken", "InvalidParameterValue"] {
        let before = tokens(&moto).await.len();
        moto.fail(&[Fault { times: Some(1), ..fault(code, Some("after-6")) }]).await;
        assert_eq!(outcomes(&inventory(&moto, &options(&[REGION])).await), [Ok(8)], "{code}");
        let asked = tokens(&moto).await;
        assert_eq!(asked[before..], ["first", "after-3", "after-6", "first", "after-3", "after-6"], "{code}");

        moto.fail(&[fault(code, Some("after-6"))]).await;
        assert_eq!(outcomes(&inventory(&moto, &options(&[REGION])).await), [Err(FailureKind::Provider)], "{code}");
        assert_eq!(tokens(&moto).await.len() - asked.len(), 6, "{code}: begun again once");
    }
}

#[tokio::test]
async fn a_page_token_that_repeats_is_malformed_and_asked_for_once() {
    let folder = tempfile::tempdir().unwrap();
    let moto = three_pages(folder.path(), ACCOUNT).await;
    moto.repeat_page_tokens().await;
    assert_eq!(outcomes(&inventory(&moto, &options(&[REGION])).await), [Err(FailureKind::Malformed)]);
    assert_eq!(tokens(&moto).await.len(), 2);
}

#[tokio::test]
async fn a_denied_call_is_made_once_and_leaves_other_regions_alone() {
    let folder = tempfile::tempdir().unwrap();
    let moto = three_pages(folder.path(), ACCOUNT).await;
    moto.fail(&[Fault { region: Some(REGION.into()), status: Some(403), ..fault("UnauthorizedOperation", None) }])
        .await;
    assert_eq!(outcomes(&inventory(&moto, &options(&REGIONS)).await), [Ok(0), Err(FailureKind::Denied), Ok(0)]);
    assert_eq!(listings(&moto).await.iter().filter(|call| call.region == REGION).count(), 1);
}

#[tokio::test]
async fn a_region_that_does_not_answer_is_cut_off_and_leaves_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let moto = three_pages(folder.path(), ACCOUNT).await;
    moto.fail(&[Fault { region: Some(REGION.into()), delay_s: Some(8), ..fault("", None) }]).await;
    // The other regions' server is Python on a machine that may be busy: a second is not always enough for it.
    let silent = Options { attempt_timeout: Duration::from_secs(5), ..options(&REGIONS) };
    assert_eq!(outcomes(&inventory(&moto, &silent).await), [Ok(0), Err(FailureKind::TimedOut), Ok(0)]);
    assert_eq!(listings(&moto).await.iter().filter(|call| call.region == REGION).count(), 4, "each attempt");

    // It answers each call in time, and never comes to an end in time.
    let mut slow = options(&REGIONS);
    slow.retry.listing_timeout = Duration::from_secs(3);
    let inventory = inventory(&moto, &slow).await;
    assert_eq!(outcomes(&inventory), [Ok(0), Err(FailureKind::TimedOut), Ok(0)]);
    let second = of_instances(&inventory).nth(1).unwrap();
    let Outcome::Failed { why, .. } = &second.outcome else { unreachable!() };
    assert!(why.message.contains("aws.listing_timeout"), "{why}");
}

/// Far more than five machines take, and less than a test waits for.
const LISTING_TIMEOUT_S: u32 = 10;

/// One idle machine in another account, on the second page of its region, with an open finding.
struct Site {
    moto: Moto,
    sweeper: Sweeper,
    store: Store,
    instance: String,
    finding: String,
}

impl Site {
    async fn new(folder: &Path) -> Self {
        Self::with_prices(folder, "none").await
    }

    async fn with_prices(folder: &Path, source: &str) -> Self {
        let moto = Moto::start(&folder.join("aws")).await;
        moto.roles(&[Assumable { arn: ROLE.into(), external_id: Some("our-id".into()), ..Assumable::default() }]).await;
        let instances = ["a", "b", "c", "quiet", "d"].map(|name| Instance::named("m5.large", name));
        let instance = moto.run_in(OTHER, REGION, &instances).await[3].clone();
        moto.page_size(3).await;
        let config = format!(
            "[aws]\nenabled = \"yes\"\nown_account = false\nregions = [\"{REGION}\"]\n\
             listing_timeout = \"{LISTING_TIMEOUT_S}s\"\n\
             [[aws.accounts]]\nrole_arn = \"{ROLE}\"\nexternal_id = \"our-id\"\n\
             [pricing]\nsource = \"{source}\"\n[verdict]\nidle_after = \"5m\"\nmissed_heartbeats = 60\n\
             [sweep]\nschedule = \"0 0 0 1 1 *\"\n"
        );
        let environment = moto.environment();
        let environment: Vec<(&str, &str)> = environment.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let mut sweeper = Sweeper::start(&folder.join("sweeper"), &config, &environment).await;
        sweeper.stop().await;
        let url = format!("sqlite://{}?mode=rwc", folder.join("sweeper/data/sweeper.db").display());
        let store = Store::connect(&url).await.unwrap();
        rest(&store, &format!("aws:{OTHER}:{REGION}:{instance}").parse().unwrap()).await;
        let mut site = Self { moto, sweeper, store, instance, finding: String::new() };
        let (code, report) = site.sweeper.sweep().await;
        assert_eq!((code, report["complete"].as_bool()), (0, Some(true)), "{report}");
        site.finding = report["opened"][0].as_str().expect("a finding").to_owned();
        site
    }

    async fn terminate(&self) {
        let terminated = Instance { state: Some("terminated".into()), ..Instance::default() };
        self.moto.change_in(OTHER, REGION, &self.instance, &terminated).await;
    }

    /// A sweep does not close the finding and says that it could not read the place.
    async fn stays_open(&self, because: &str) {
        let (code, report) = self.sweeper.sweep().await;
        assert_eq!((code, report["complete"].as_bool()), (3, Some(false)), "{because}: {report}");
        assert_eq!(report["closed"], Value::Array(Vec::new()), "{because}");
        let scopes = report["scopes"].as_array().unwrap();
        let scope = scopes.iter().find(|scope| scope["kind"].is_null() || scope["kind"] == "instance").unwrap();
        let failed = scope["failed"].as_str().unwrap();
        assert!(failed.contains(because), "{failed}");
        assert_eq!(scope["account"], OTHER);
        let open = self.store.open_findings().await.unwrap();
        assert_eq!(open.iter().map(|finding| finding.id.0.as_str()).collect::<Vec<_>>(), [&self.finding]);
    }

    async fn closes(&self) {
        let (code, report) = self.sweeper.sweep().await;
        assert_eq!((code, report["complete"].as_bool()), (0, Some(true)), "{report}");
        assert_eq!(report["closed"], Value::Array(vec![self.finding.clone().into()]));
        self.sweeper.replays().await;
    }
}

/// Ten minutes of heartbeats, up to now, from a node on which nothing happens.
async fn rest(store: &Store, node: &NodeId) {
    let (boot, now) = (sample::boot(7), Timestamp::now());
    store.join_node(&sample::join(node, boot), &TokenHash::of(&node.to_string()), now).await.unwrap();
    store.store_heartbeats(&sample::checked(&sample::rest(node, boot, now)), now).await.unwrap();
}

#[tokio::test]
async fn credentials_that_expire_during_a_sweep_confirm_the_finding_if_renewed_and_never_close_it_if_not() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    let expiring = Fault { expire: true, ..fault("", Some("after-3")) };
    site.moto.fail(&[Fault { times: Some(1), ..expiring.clone() }]).await;
    let (code, report) = site.sweeper.sweep().await;
    assert_eq!((code, report["complete"].as_bool()), (0, Some(true)), "{report}");
    assert_eq!(site.store.open_findings().await.unwrap()[0].confirmed_sweeps, 2);
    let asked = tokens(&site.moto).await;
    assert!(asked.ends_with(&["first", "after-3", "after-3"].map(str::to_owned)), "{asked:?}");

    site.terminate().await;
    site.moto.fail(&[expiring]).await;
    site.stays_open("ec2:DescribeInstances: credentials: RequestExpired").await;
    site.moto.fail(&[]).await;
    site.closes().await;
}

#[tokio::test]
async fn what_a_sweep_cannot_read_closes_no_finding() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::new(folder.path()).await;
    site.terminate().await;

    site.moto.repeat_page_tokens().await;
    site.stays_open("malformed answer: a page token came twice").await;
    site.moto.page_size(3).await;

    site.moto.fail(&[fault("UnauthorizedOperation", None)]).await;
    site.stays_open("ec2:DescribeInstances: denied: UnauthorizedOperation").await;
    site.moto.fail(&[fault("InvalidNextToken", Some("after-3"))]).await;
    site.stays_open("ec2:DescribeInstances: provider error: InvalidNextToken").await;
    site.moto.fail(&[]).await;

    site.moto.roles(&[]).await;
    site.stays_open("sts:AssumeRole: denied").await;
    site.moto.roles(&[Assumable { arn: ROLE.into(), ..Assumable::default() }]).await;

    // The region answers the first page, and no other.
    let silent = Fault { delay_s: Some(LISTING_TIMEOUT_S + 2), ..fault("", Some("after-3")) };
    site.moto.fail(&[silent]).await;
    site.stays_open("ec2:DescribeInstances: timed out").await;
    site.moto.fail(&[]).await;

    // What can be waited out is no hindrance.
    site.moto
        .fail(&[Fault { status: Some(503), times: Some(1), ..fault("RequestLimitExceeded", Some("after-3")) }])
        .await;
    site.closes().await;
}
