//! Nodes on paper that did nothing for ten minutes, swept on request, and the channels on which people are told.

use heartbeat::NodeId;
use jiff::{SignedDuration, Timestamp};
use lab::{sample, slack::Slack, smtp::Smtp};
use sea_orm::ConnectionTrait as _;
use secrecy::SecretString;
use serde_json::Value;
use std::time::Duration;
use sweeper::{
    config::{Config, Enabled, PricingSource},
    inventory::Silent,
    outbox::{self, Channels, Delivered},
    store::{Message, MessageState, Store, StoreError, TokenHash},
    sweep::{self, Context, Report},
};

/// Nodes on premises, the first two without a price and each other one a cent an hour dearer than the one before.
pub(super) struct Fleet {
    pub(super) context: Context,
    pub(super) slack: Slack,
    pub(super) smtp: Smtp,
    pub(super) url: String,
    channels: Channels,
    now: Timestamp,
    /// How often some have worked.
    worked: u32,
}

impl Fleet {
    pub(super) async fn new(url: &str, count: u32) -> Self {
        let fleet = Self::of(url, count, Timestamp::now(), |_| {}).await;
        for number in 0..count {
            fleet.join(number, &format!("machine-{number}")).await;
        }
        fleet
    }

    /// Prices for so many, of which none is there yet, at a moment, with other settings.
    pub(super) async fn of(url: &str, count: u32, now: Timestamp, change: impl FnOnce(&mut Config)) -> Self {
        let store = Store::connect(url).await.expect("a database");
        store.migrate().await.expect("a schema");
        let (slack, smtp) = (Slack::start().await, Smtp::start().await);
        let mut config = Config::default();
        config.aws.enabled = Enabled::No;
        config.pricing.source = PricingSource::None;
        config.verdict.idle_after = Duration::from_secs(300);
        config.outbox.base_delay = Duration::ZERO;
        // Longer than any sweep takes on a busy host: what waits for company is told when a scenario says so.
        config.outbox.gather = Duration::from_secs(3_600);
        config.slack.token = Some(SecretString::from(Slack::TOKEN));
        config.slack.channel = Some(Slack::CHANNEL.to_owned());
        config.slack.api_url = slack.api_url();
        config.email.host = Some(smtp.host().to_owned());
        config.email.port = smtp.port();
        config.email.username = Some(Smtp::USERNAME.to_owned());
        config.email.password = Some(SecretString::from(Smtp::PASSWORD));
        config.email.from = Some("sweeper@example.org".to_owned());
        config.email.to = vec!["ops@example.org".to_owned()];
        config.email.ca_file = Some(smtp.ca_file());
        for number in 2..count {
            let price = format!("{}.{:02}", number / 100, number % 100);
            config.onprem.hourly_usd.insert(sample::node(number).to_string(), price);
        }
        change(&mut config);
        let channels = Channels::new(&config).expect("channels");
        let context = Context { store, config, channels: channels.names(), price_lists: sweep::PriceLists::default() };
        Self { context, slack, smtp, url: url.to_owned(), channels, now, worked: 0 }
    }

    /// The sweeper begins anew with other settings.
    pub(super) fn reconfigure(&mut self, change: impl FnOnce(&mut Config)) {
        change(&mut self.context.config);
        self.channels = Channels::new(&self.context.config).expect("channels");
    }

    pub(super) fn store(&self) -> &Store {
        &self.context.store
    }

    /// One more node, which has been idle since ten minutes before.
    pub(super) async fn join(&self, number: u32, name: &str) {
        self.join_as(&sample::node(number), number, name).await;
    }

    /// The same under another id.
    pub(super) async fn join_as(&self, node: &NodeId, number: u32, name: &str) {
        let token = TokenHash::of(&format!("token {number}"));
        self.store().join_node(&sample::join(node, sample::boot(number)), &token, self.now).await.expect("a node");
        self.beat(node, number, name, |_| {}).await;
    }

    /// So much later a node has been started again, and idle for ten minutes.
    pub(super) async fn rest_again(&mut self, node: &NodeId, boot: u32, name: &str, later: SignedDuration) {
        self.now += later;
        self.worked = 0;
        self.beat(node, boot, name, |_| {}).await;
    }

    async fn beat(&self, node: &NodeId, number: u32, name: &str, change: impl Fn(&mut heartbeat::wire::Envelope)) {
        let mut envelope = sample::rest(node, sample::boot(number), self.now);
        for beat in &mut envelope.heartbeats {
            if let Some(host) = &mut beat.host {
                name.clone_into(&mut host.hostname);
            }
        }
        change(&mut envelope);
        self.store().store_heartbeats(&sample::checked(&envelope), self.now).await.expect("heartbeats");
    }

    /// Half a minute later these nodes have worked.
    pub(super) async fn work(&mut self, numbers: impl IntoIterator<Item = u32>) {
        self.go_on();
        for number in numbers {
            self.has_worked(&sample::node(number), number, &format!("machine-{number}")).await;
        }
    }

    /// The same of one under another id.
    pub(super) async fn work_as(&mut self, node: &NodeId, boot: u32, name: &str) {
        self.go_on();
        self.has_worked(node, boot, name).await;
    }

    fn go_on(&mut self) {
        // A sweep takes a second.
        self.now += SignedDuration::from_secs(29);
        self.worked += 1;
    }

    async fn has_worked(&self, node: &NodeId, boot: u32, name: &str) {
        let intervals = u64::from(self.worked);
        self.beat(node, boot, name, |envelope| {
            let last = envelope.heartbeats.last_mut().expect("a heartbeat");
            last.sequence += intervals;
            last.workloads[0].cpu_ns = Some(20_000_000_000);
            if let Some(counters) = &mut last.counters {
                counters.cpu_busy_ns = Some(20_000_000_000);
            }
            if let Some(interval) = &mut last.interval {
                interval.start_boottime_ns += intervals * 30_000_000_000;
                interval.end_boottime_ns += intervals * 30_000_000_000;
            }
            let last = last.clone();
            envelope.heartbeats = vec![last];
        })
        .await;
    }

    pub(super) async fn sweep(&mut self) -> Report {
        self.now += SignedDuration::from_secs(1);
        sweep::run(&self.context, self.now, &Silent).await.expect("a report")
    }

    /// Sends all that was written, whether or not more might come.
    pub(super) async fn deliver(&self) -> Delivered {
        self.store().end_gathering(self.context.config.outbox.gather).await.expect("a database");
        self.deliver_due().await.expect("a database")
    }

    /// Sends what is due.
    pub(super) async fn deliver_due(&self) -> Result<Delivered, StoreError> {
        outbox::deliver_due(self.store(), &self.channels, &self.context.config.outbox).await
    }

    /// Sends what is due as another replica, with a pool of connections of its own.
    pub(super) async fn deliver_as_another(&self) -> Delivered {
        let store = Store::connect(&self.url).await.expect("a database");
        outbox::deliver_due(&store, &self.channels, &self.context.config.outbox).await.expect("a database")
    }

    /// The messages of a channel, in one state or in any.
    pub(super) async fn messages(&self, channel: &str, state: Option<MessageState>) -> Vec<Message> {
        let mut messages = self.store().messages(state, 10_000).await.expect("messages");
        messages.retain(|message| message.channel == channel);
        messages
    }

    pub(super) async fn execute(&self, statement: &str) -> u64 {
        let done = self.store().connection().execute_unprepared(statement).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}")).rows_affected()
    }

    /// Headings of the messages in Slack, in order.
    pub(super) fn headings(&self) -> Vec<String> {
        self.slack.messages().iter().map(heading).collect()
    }
}

/// What a message in Slack says first.
pub(super) fn heading(message: &Value) -> String {
    message["blocks"][0]["text"]["text"].as_str().expect("a heading").to_owned()
}
