//! When a connection last carried data. Pure but for [`moved`], which reads one file.
//!
//! TCP says it itself: `struct tcp_info` holds how long ago data was last sent, last received and last acknowledged, and how many
//! bytes were. So nothing has to be remembered from one sample to the next, and a connection that is older than the agent
//! tells its age at the first sample. A keepalive probe carries no data and changes none of it; data that is only repeated,
//! because nobody answers, is not acknowledged, and does not count.
//!
//! `/proc/PID/net/tcp`, which is all that another network namespace shows without rights, has no such times: there a
//! connection counts as used at this sample if its queues hold data now, or if its namespace as a whole sent or received data by TCP since
//! the sample before. That is true of at least one of its connections; which of them is not known, so it is taken to be true of all.
//!
//! UDP has neither: a UDP port is known to have been used only where received data waits in its queue at the sample.

use std::{fs, path::Path};

/// When a socket last carried data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Exchange {
    /// So long ago.
    Ago {
        /// Milliseconds.
        ms: u32,
    },
    /// Not since it was made.
    Never,
    /// The kernel does not tell.
    #[default]
    Unknown,
}

impl Exchange {
    /// From `struct tcp_info`: <https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/tcp.h#L229>
    ///
    /// The kernel's clock for these ages wraps after 49.7 days: a connection that was silent for exactly that long seems to have just
    /// been used, once.
    pub(super) fn of_tcp_info(info: &[u8]) -> Self {
        let word = |at: usize| Some(u32::from_ne_bytes(*info.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_ne_bytes(*info.get(at..)?.first_chunk()?));
        let (Some(data_sent), Some(data_received), Some(acknowledged)) = (word(44), word(52), word(56)) else {
            return Self::Unknown;
        };
        // Who opened a connection has one byte acknowledged by that alone, who accepted it has none: a single byte is data if any segment
        // held some. Kernels before 4.1 do not count bytes: then the ages alone speak.
        let has_data = word(156).is_some_and(|segments| segments > 0);
        let has_sent = long(120).is_none_or(|bytes| bytes > 1 || (bytes == 1 && has_data));
        let has_received = long(128).is_none_or(|bytes| bytes > 0);
        let sent = has_sent.then_some(data_sent.max(acknowledged));
        let received = has_received.then_some(data_received);
        sent.into_iter().chain(received).min().map_or(Self::Never, |ms| Self::Ago { ms })
    }

    /// From the column `tx_queue:rx_queue` of `/proc/net/tcp` and `udp`, in hexadecimal.
    pub(super) fn of_queues(column: &str) -> Self {
        let is_empty = column.split(':').all(|queue| u64::from_str_radix(queue, 16) == Ok(0));
        if is_empty { Self::Unknown } else { Self::Ago { ms: 0 } }
    }

    /// The moment, in milliseconds since 1970-01-01 UTC.
    pub(super) fn unix_ms(self, now_unix_ms: i64) -> Option<i64> {
        match self {
            Self::Ago { ms } => Some(now_unix_ms.saturating_sub(ms.into())),
            Self::Never | Self::Unknown => None,
        }
    }
}

/// Segments with data that a network namespace sent (`TCPOrigDataSent`) and received on the fast path (`TCPHPHits`), from its
/// `/proc/PID/net/netstat`. Absent if that cannot be read.
pub(super) fn moved(net: &Path) -> Option<u64> {
    moved_in(&fs::read_to_string(net.join("netstat")).ok()?)
}

fn moved_in(netstat: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
    let wanted = pairs.filter(|(name, _)| matches!(*name, "TCPOrigDataSent" | "TCPHPHits"));
    let found: Vec<u64> = wanted.filter_map(|(_, value)| value.parse().ok()).collect();
    (found.len() == 2).then(|| found.into_iter().fold(0, u64::wrapping_add))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn info(sent_ms: u32, received_ms: u32, acknowledged_ms: u32, bytes: Option<(u64, u64)>) -> Vec<u8> {
        let mut info = vec![0; if bytes.is_some() { 240 } else { 104 }];
        for (at, value) in [(44, sent_ms), (52, received_ms), (56, acknowledged_ms)] {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        if let Some((acknowledged, received)) = bytes {
            info[120..128].copy_from_slice(&acknowledged.to_ne_bytes());
            info[128..136].copy_from_slice(&received.to_ne_bytes());
        }
        info
    }

    #[test]
    fn who_accepted_a_connection_and_sent_one_byte_has_sent() {
        let mut one_byte = info(3_000, 9_000, 2_990, Some((1, 0)));
        assert_eq!(Exchange::of_tcp_info(&one_byte), Exchange::Never);
        one_byte[156..160].copy_from_slice(&1_u32.to_ne_bytes());
        assert_eq!(Exchange::of_tcp_info(&one_byte), Exchange::Ago { ms: 3_000 });
    }

    #[test]
    fn a_connection_tells_when_it_last_carried_data() {
        let ago = |ms| Exchange::Ago { ms };
        for (info, expected, what) in [
            (info(9_000, 9_000, 9_000, Some((1, 0))), Exchange::Never, "opened, and nothing more"),
            (info(9_000, 4_000, 9_000, Some((1, 7))), ago(4_000), "received"),
            (info(3_000, 4_000, 2_990, Some((8, 7))), ago(3_000), "sent, and acknowledged at once"),
            (info(900_000, 900_000, 5_000, Some((8, 7))), ago(900_000), "a keepalive probe was answered"),
            (info(500, 900_000, 800_000, Some((8, 7))), ago(800_000), "repeated, and nobody answers"),
            (info(500, 900_000, 800_000, Some((1, 0))), Exchange::Never, "sent, and never answered"),
            (info(700, 600, 650, None), ago(600), "a kernel that does not count bytes"),
            (vec![0; 50], Exchange::Unknown, "cut off"),
        ] {
            assert_eq!(Exchange::of_tcp_info(&info), expected, "{what}");
        }
        assert_eq!(ago(4_000).unix_ms(10_000), Some(6_000));
        assert_eq!([Exchange::Never, Exchange::Unknown].map(|exchange| exchange.unix_ms(1)), [None, None]);
    }

    #[test]
    fn a_queue_that_holds_data_is_in_use() {
        assert_eq!(Exchange::of_queues("00000000:00000000"), Exchange::Unknown);
        assert_eq!(Exchange::of_queues("00000001:00000000"), Exchange::Ago { ms: 0 });
        assert_eq!(Exchange::of_queues("00000000:00000A00"), Exchange::Ago { ms: 0 });
    }

    #[test]
    fn a_namespace_counts_segments_with_data() {
        let netstat = "TcpExt: SyncookiesSent TCPHPHits TCPPureAcks TCPOrigDataSent\nTcpExt: 0 5 900 7\nIpExt: InOctets\nIpExt: 9\n";
        assert_eq!(moved_in(netstat), Some(12));
        assert_eq!(moved_in("TcpExt: TCPHPHits\nTcpExt: 5\n"), None);
        assert_eq!(moved_in(""), None);
        assert!(moved(Path::new("/proc/self/net")).unwrap() > 0);
    }
}
