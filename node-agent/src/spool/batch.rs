//! What is sent next: the newest.

use super::{Spool, record};
use heartbeat::{BootId, wire};
use std::time::SystemTime;

/// Heartbeats that can go into one envelope: of one boot.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The boot of all of them.
    pub boot: BootId,
    /// See [`wire::Envelope::oldest_retained_sequence`].
    pub oldest_retained_sequence: u64,
    /// In order of sequence; at least one.
    pub heartbeats: Vec<wire::Heartbeat>,
}

impl Spool {
    /// The newest heartbeats that wait, of the newest boot that has any: at most `max_count` of them and, beyond the first,
    /// `max_bytes`.
    pub fn batch(&mut self, max_count: usize, max_bytes: usize) -> Option<Batch> {
        self.enforce_limits(SystemTime::now());
        loop {
            let at = self.boots.iter().rposition(|boot| !boot.waiting.is_empty())?;
            let (damaged, heartbeats) = self.read_newest(at, max_count, max_bytes);
            for (sequence, why) in damaged {
                tracing::warn!(boot = %self.boots[at].id, sequence, why, "a spooled heartbeat is damaged; it is set aside");
                self.stats.damaged += 1;
                self.set_aside(at, sequence, "damaged");
            }
            let boot = &self.boots[at];
            if let (Some(oldest), false) = (boot.waiting.keys().next(), heartbeats.is_empty()) {
                return Some(Batch { boot: boot.id, oldest_retained_sequence: *oldest, heartbeats });
            }
        }
    }

    /// In order of sequence; the damaged records on the way are named.
    fn read_newest(&self, at: usize, max_count: usize, max_bytes: usize) -> (Vec<(u64, String)>, Vec<wire::Heartbeat>) {
        let boot = &self.boots[at];
        let (mut damaged, mut heartbeats, mut total) = (Vec::new(), Vec::new(), 0);
        for (sequence, waiting) in boot.waiting.iter().rev() {
            if heartbeats.len() >= max_count {
                break;
            }
            let read = match &waiting.in_memory {
                Some(record) => Ok(record.clone()),
                None => boot.dir.read(*sequence),
            };
            let heartbeat = read.map_err(|error| error.to_string()).and_then(|record| {
                total += record.len();
                record::read(&record).map_err(|damage| damage.to_string())
            });
            match heartbeat {
                Ok(_) if total > max_bytes && !heartbeats.is_empty() => break,
                Ok(heartbeat) if heartbeat.sequence == *sequence => heartbeats.push(heartbeat),
                Ok(other) => damaged.push((*sequence, format!("it holds sequence {}", other.sequence))),
                Err(why) => damaged.push((*sequence, why)),
            }
        }
        heartbeats.reverse();
        (damaged, heartbeats)
    }
}
