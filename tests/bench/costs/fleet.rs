//! A fleet on paper: m5.xlarge of three accounts in four regions, of twenty teams and fifty people, each with an agent, all started before the first day; a price that changed
//! on the way; and what zones offer: some seven hundred types.

use crate::hours::{self, KINDS};
use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use lab::sample;
use model::{HourlyRate, Provider, ResourceKey, ResourceKind};
use recommender::catalogue::{Architecture, Burst, Limits, MachineType, Platform};
use sea_orm::{ConnectionTrait as _, DbBackend, Statement, TransactionTrait as _};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use sweeper::{
    inventory::{
        Instance, InstanceState, InstanceStore, Inventory, Kind, Launched, LaunchedBy, Lifecycle, Listing, Offered,
        OfferedType, Outcome, Protection, RootDevice, Scope, Tenancy, Trail,
    },
    pricing::{PriceKey, ReadPrice},
    store::{Store, TokenHash},
};

/// The price list's name.
const SOURCE: &str = "api";
const ACCOUNTS: usize = 3;
const REGIONS: [&str; 4] = ["us-east-1", "us-west-2", "eu-central-1", "eu-west-1"];
const TEAMS: usize = 20;
const USERS: usize = 50;
/// Families of eight sizes each.
const FAMILIES: usize = 90;
const SIZES: [&str; 8] = ["large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge"];
const HOUR: SignedDuration = SignedDuration::from_hours(1);
/// Rollups of one statement.
const AT_ONCE: usize = 500;
/// Machines whose copies are committed together.
const MACHINES_AT_ONCE: usize = 50;
/// So many of these are told at once.
const PROGRESS: usize = 10;

/// See above.
pub(crate) struct Fleet {
    machines: Vec<ResourceKey>,
    from: Timestamp,
    to: Timestamp,
}

impl Fleet {
    /// So many machines through this time.
    pub(crate) fn new(machines: usize, from: Timestamp, to: Timestamp) -> Self {
        let key = |number: usize| ResourceKey {
            provider: Provider::Aws,
            account: format!("{:012}", 100_000_000_000 + number % ACCOUNTS),
            location: REGIONS[number / ACCOUNTS % REGIONS.len()].to_owned(),
            kind: ResourceKind::Instance,
            id: format!("i-{number:017x}"),
        };
        Self { machines: (0..machines).map(key).collect(), from, to }
    }

    /// All machines' time.
    pub(crate) fn seconds(&self) -> u64 {
        self.machines.len() as u64 * (self.to.as_second() - self.from.as_second()).unsigned_abs()
    }

    fn instance(&self, number: usize) -> Instance {
        let id = self.machines[number].clone();
        let zone = format!("{}a", id.location);
        let tags = [("team", format!("team-{}", number % TEAMS)), ("Name", format!("worker-{number}"))];
        Instance {
            id,
            name: Some(format!("worker-{number}")),
            instance_type: Some("m5.xlarge".to_owned()),
            state: InstanceState::Running,
            launched_at: Some(self.from - HOUR * 24),
            attached_at: None,
            lifecycle: Lifecycle::OnDemand,
            capacity_reservation: None,
            availability_zone: Some(zone),
            on_outpost: false,
            platform_details: Some("Linux/UNIX".to_owned()),
            usage_operation: Some("RunInstances".to_owned()),
            tenancy: Tenancy::Shared,
            root_device: RootDevice::Ebs,
            instance_store: InstanceStore::Absent,
            volumes: Vec::new(),
            network_interfaces: vec![format!("eni-{number:017x}")],
            public_ipv4: Vec::new(),
            tags: tags.map(|(name, value)| (name.to_owned(), value)).into(),
            autoscaling_group: None,
            launch_template: None,
            operator: None,
            hibernation_configured: Some(false),
            instance_profile: None,
            google: None,
        }
    }

    /// Puts in all but the rollups, scope by scope, as sweeps and joins do.
    pub(crate) async fn register(&self, store: &Store) {
        let mut scopes = BTreeMap::<Scope, Vec<usize>>::new();
        for (number, key) in self.machines.iter().enumerate() {
            let (account, region) = (key.account.clone(), key.location.clone());
            scopes.entry(Scope { provider: key.provider, account, region }).or_default().push(number);
        }
        let now = Timestamp::now();
        for (scope, machines) in &scopes {
            let instances: Vec<Instance> = machines.iter().map(|number| self.instance(*number)).collect();
            self.prices(store, &instances[0], now).await;
            let launched_by = |number: &usize| LaunchedBy {
                principal: Some(format!("user-{}", number % USERS)),
                at: Some(self.from - HOUR * 24),
                ..LaunchedBy::default()
            };
            let id = |number: &usize| self.machines[*number].id.clone();
            let launches = machines.iter().map(|number| (id(number), launched_by(number))).collect();
            let trail = Trail { from: self.from, until: now };
            store.put_launches(scope, Launched::Machine, &launches, trail, &HashSet::new()).await.expect("launches");
            store.put_catalogue(scope, &offered(&scope.region), now).await.expect("a catalogue");
            let free = |number: &usize| (id(number), Protection { stop: Some(false), termination: Some(false) });
            let free = machines.iter().map(free).collect();
            store.put_protection(scope, &free, &BTreeSet::new(), now).await.expect("protection");
            // Listed before the first day, and a moment ago.
            let inventory = Inventory { instances, listings: listings(scope), ..Inventory::default() };
            for at in [self.from - HOUR * 12, now] {
                store.record_inventory(scope, &inventory, at).await.expect("a history");
            }
        }
        // Lists were read every day: what begins with the first one lasts.
        let whole = "UPDATE listing_spans SET until_unix_ms = (SELECT MAX(until_unix_ms) FROM listing_spans)";
        store.connection().execute_unprepared(whole).await.expect("spans");
        for (key, number) in self.machines.iter().zip(1..) {
            let node: NodeId = key.to_string().parse().expect("a node id");
            let token = TokenHash::of(&format!("token {number}"));
            store.join_node(&sample::join(&node, sample::boot(number)), &token, self.from).await.expect("a node");
        }
    }

    /// Prices of all types, of which those of the machines' own one changed in the middle.
    async fn prices(&self, store: &Store, of: &Instance, now: Timestamp) {
        let list = PriceKey::of(of).expect("a key").list();
        let price = |at: usize, name: &str, more: i64| {
            let micros = 24_000 * i64::from(4 << at) / 2 + i64::try_from(name.len()).unwrap_or(0) * 100 + more;
            (
                list.of_type(name),
                ReadPrice { per_hour: HourlyRate::from_micros(micros), source_rows: "paper".to_owned() },
            )
        };
        let names: Vec<(usize, String)> = types().map(|(_, at, name)| (at, name)).collect();
        let all: BTreeMap<PriceKey, ReadPrice> = names.iter().map(|(at, name)| price(*at, name, 0)).collect();
        store.put_prices(SOURCE, &all, self.from - HOUR * 12).await.expect("prices");
        let middle = self.from + (self.to.duration_since(self.from) / 2);
        let changed = BTreeMap::from([price(1, "m5.xlarge", 7)]);
        store.put_prices(SOURCE, &changed, middle).await.expect("a price");
        let again: BTreeMap<PriceKey, ReadPrice> =
            names.iter().map(|(at, name)| price(*at, name, if name == "m5.xlarge" { 7 } else { 0 })).collect();
        store.put_prices(SOURCE, &again, now).await.expect("prices");
        store.put_price_list(SOURCE, &list, now).await.expect("a list");
    }

    /// Puts in all rollups; says how many, and how many bytes they have. Those of one machine of each kind are made; those of all others are copied within the database, which
    /// is handed no rollup twice, in its order and without reading the table that it writes.
    pub(crate) async fn fill(&self, store: &Store) -> (i64, i64) {
        for (kind, key) in self.machines.iter().take(KINDS).enumerate() {
            let node: NodeId = key.to_string().parse().expect("a node id");
            let mut hour = self.from;
            while hour < self.to {
                let mut made = Vec::with_capacity(AT_ONCE);
                while hour < self.to && made.len() < AT_ONCE {
                    made.push((hour, hours::rollup(kind, hour)));
                    hour += HOUR;
                }
                store.put_hours(&node, made).await.expect("rollups");
            }
        }
        let run = async |statement: &str| {
            store
                .connection()
                .execute_unprepared(statement)
                .await
                .unwrap_or_else(|error| panic!("{statement}: {error}"))
        };
        run("CREATE TABLE bench_kinds AS SELECT * FROM rollups ORDER BY node_id, tier, start_unix_ms").await;
        run("CREATE INDEX bench_kinds_by_node ON bench_kinds (node_id)").await;
        let columns = "tier, start_unix_ms, heartbeats, rollup, summary, summary_heartbeats, summary_of_bytes";
        let copied: Vec<usize> = (KINDS..self.machines.len()).collect();
        let began = std::time::Instant::now();
        for (done, numbers) in copied.chunks(MACHINES_AT_ONCE).enumerate() {
            let transaction = store.connection().begin().await.expect("a transaction");
            for number in numbers {
                let (from, to) = (&self.machines[number % KINDS], &self.machines[*number]);
                let copy = format!(
                    "INSERT INTO rollups (node_id, {columns}) SELECT '{to}', {columns} FROM bench_kinds WHERE node_id = '{from}'"
                );
                transaction.execute_unprepared(&copy).await.expect("copies");
            }
            transaction.commit().await.expect("a commit");
            if (done + 1) % PROGRESS == 0 {
                let machines = (done + 1) * MACHINES_AT_ONCE + KINDS;
                eprintln!("the rollups of {machines} machines are in after {:.0} s", began.elapsed().as_secs_f64());
            }
        }
        run("DROP TABLE bench_kinds").await;
        if store.connection().get_database_backend() == DbBackend::Postgres {
            // It does so by itself after a while.
            run("VACUUM ANALYZE").await;
        }
        let sum = "CAST(SUM(length(rollup) + length(summary)) AS BIGINT)";
        counted(store, &format!("SELECT COUNT(*) AS n, {sum} AS bytes FROM rollups")).await
    }
}

/// How many rows are kept of days that were added up, and how many bytes they have.
pub(crate) async fn kept(store: &Store) -> (i64, i64) {
    let columns = ["machines", "amounts", "pipeline", "run", "task", "tool", "workload"];
    let bytes = columns.map(|column| format!("COALESCE(length({column}), 0)")).join(" + ");
    let sum = format!("CAST(COALESCE(SUM({bytes}), 0) AS BIGINT)");
    counted(store, &format!("SELECT COUNT(*) AS n, {sum} AS bytes FROM cost_days")).await
}

async fn counted(store: &Store, count: &str) -> (i64, i64) {
    let backend = store.connection().get_database_backend();
    let row = store.connection().query_one_raw(Statement::from_string(backend, count)).await;
    let row = row.expect("an answer").expect("a row");
    (row.try_get("", "n").expect("a count"), row.try_get("", "bytes").expect("bytes"))
}

/// Every kind of resource that a sweep lists.
fn listings(scope: &Scope) -> Vec<Listing> {
    let listing = |kind: &Kind| Listing {
        provider: scope.provider,
        account: Some(scope.account.clone()),
        region: Some(scope.region.clone()),
        kind: Some(*kind),
        outcome: Outcome::Complete { listed: 0 },
    };
    Kind::ALL.iter().filter(|kind| kind.is_read_of(scope.provider)).map(listing).collect()
}

/// Family, size and name of each type.
fn types() -> impl Iterator<Item = (String, usize, String)> {
    let families = (0..FAMILIES).map(|number| if number == 0 { "m5".to_owned() } else { format!("f{number}") });
    families.flat_map(|family| {
        SIZES.iter().enumerate().map(move |(at, size)| (family.clone(), at, format!("{family}.{size}")))
    })
}

fn offered(region: &str) -> Offered {
    let of = |(family, at, name): (String, usize, String)| OfferedType {
        machine_type: MachineType {
            name,
            family,
            architecture: Architecture::X86_64,
            platform: Platform::Hypervisor("nitro".to_owned()),
            vcpus: 2 << at,
            threads_per_core: Some(2),
            mhz: Some(3_100),
            memory_mib: 8_192 << at,
            accelerators: Some(Vec::new()),
            local_disk_gib: Some(0),
            burst: Burst::Steady,
            network: Limits { baseline: Some(100_000_000 << at), burst: Some(1_250_000_000) },
            disk: Limits { baseline: Some(80_000_000 << at), burst: Some(600_000_000) },
            disk_operations: Limits { baseline: Some(3_600 << at), burst: Some(18_750) },
            interfaces: Some(3),
        },
        boot_modes: Some(["legacy-bios".to_owned(), "uefi".to_owned()].into()),
    };
    let types: Vec<OfferedType> = types().map(of).collect();
    let names: BTreeSet<String> = types.iter().map(|one| one.machine_type.name.clone()).collect();
    Offered { types, zones: [(format!("{region}a"), names)].into() }
}
