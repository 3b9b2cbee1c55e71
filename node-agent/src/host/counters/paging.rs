//! `/proc/vmstat`: what memory was short of.

use super::number;

/// What one sample of `/proc/vmstat` holds; each absent where the kernel does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Paging {
    /// Faults that needed storage.
    pub(super) major_faults: Option<u64>,
    /// Pages that tasks reclaimed by themselves before they got memory.
    pub(super) direct_reclaim_pages: Option<u64>,
    /// Pages read from and written to swap.
    pub(super) swap_pages: Option<u64>,
    /// Kills by the out-of-memory killer, since Linux 4.13.
    pub(super) oom_kills: Option<u64>,
}

pub(super) fn parse(vmstat: &str) -> Paging {
    Paging {
        major_faults: number(vmstat, "pgmajfault"),
        direct_reclaim_pages: direct_reclaim(vmstat),
        swap_pages: number(vmstat, "pswpin")
            .zip(number(vmstat, "pswpout"))
            .map(|(read, written)| read.saturating_add(written)),
        oom_kills: number(vmstat, "oom_kill"),
    }
}

/// One number since Linux 4.8, and before that one for each memory zone (`pgsteal_direct_dma32`).
fn direct_reclaim(vmstat: &str) -> Option<u64> {
    number(vmstat, "pgsteal_direct").or_else(|| {
        let zones: Vec<u64> = vmstat
            .lines()
            .filter_map(|line| line.strip_prefix("pgsteal_direct_")?.split_once(' ')?.1.trim().parse().ok())
            .collect();
        (!zones.is_empty()).then(|| zones.into_iter().fold(0, u64::saturating_add))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_ten_years_are_understood() {
        let cases = [
            (
                // Linux 6.18
                "nr_free_pages 5\npswpin 3\npswpout 4\npgfault 900\npgmajfault 12\npgsteal_kswapd 7\npgsteal_direct 8\npgsteal_khugepaged 0\npgscan_direct 9\npgscan_direct_throttle 1\noom_kill 2\n",
                Paging {
                    major_faults: Some(12),
                    direct_reclaim_pages: Some(8),
                    swap_pages: Some(7),
                    oom_kills: Some(2),
                },
            ),
            (
                // Linux 4.4 (Ubuntu 16.04): reclaim by zone, no kills
                "pswpin 0\npswpout 0\npgmajfault 1\npgsteal_kswapd_dma 9\npgsteal_direct_dma 1\npgsteal_direct_dma32 20\npgsteal_direct_normal 300\npgsteal_direct_movable 0\npgscan_direct_throttle 5\n",
                Paging { major_faults: Some(1), direct_reclaim_pages: Some(321), swap_pages: Some(0), oom_kills: None },
            ),
            (
                // without CONFIG_SWAP
                "pgmajfault 1\npgsteal_direct 0\noom_kill 0\n",
                Paging { major_faults: Some(1), direct_reclaim_pages: Some(0), swap_pages: None, oom_kills: Some(0) },
            ),
            // without CONFIG_VM_EVENT_COUNTERS
            ("nr_free_pages 5\n", Paging::default()),
        ];
        for (vmstat, expected) in cases {
            assert_eq!(parse(vmstat), expected, "{vmstat}");
        }
    }
}
