//! `/proc/net/dev`: what went over the wires of this machine.

/// Bytes in and out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Received.
    pub in_bytes: u64,
    /// Sent.
    pub out_bytes: u64,
}

/// Bytes over interfaces that stand for a wire: not loopback, and none that only passes on what another one counts.
pub(super) fn parse(dev: &str, is_own_interface: impl Fn(&str) -> bool) -> Option<Traffic> {
    let mut sum = Traffic::default();
    for line in dev.lines().skip(2) {
        let (name, counters) = line.rsplit_once(':')?;
        if !is_own_interface(name.trim()) {
            continue;
        }
        let counters: Vec<&str> = counters.split_ascii_whitespace().collect();
        sum.in_bytes = sum.in_bytes.saturating_add(counters.first()?.parse().ok()?);
        sum.out_bytes = sum.out_bytes.saturating_add(counters.get(8)?.parse().ok()?);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_no_network() {
        let dev = "Inter-| Receive\n face |bytes\n    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n  eth0:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0\n";
        assert_eq!(parse(dev, |name| name != "lo"), Some(Traffic { in_bytes: 100, out_bytes: 200 }));
        assert_eq!(parse("a\nb\neth0: x\n", |_| true), None);
    }
}
