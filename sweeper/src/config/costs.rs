//! Settings of what costs are split by and whose they are.

use costs::Weights;
use model::Usd;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[costs]`: how costs are split and whose they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CostsConfig {
    /// What an hour of a core costs in proportion to memory and GPUs, in US dollars as text.
    pub core_usd: String,
    /// What an hour of a GiB of memory costs, likewise.
    pub gib_usd: String,
    /// What an hour of a GPU costs, likewise.
    pub gpu_usd: String,
    /// Tags that name a machine's team or cost centre, in the order in which they are believed; compared without case.
    pub team_tags: Vec<String>,
    /// The team of an account's machines that have no such tag.
    pub account_teams: BTreeMap<String, String>,
}

impl Default for CostsConfig {
    fn default() -> Self {
        let Weights { core, gib, gpu } = Weights::default();
        // As `Usd` is read, and without its sign.
        let usd = |micros: u32| Usd::from_micros(micros.into()).to_string().replace('$', "");
        Self {
            core_usd: usd(core),
            gib_usd: usd(gib),
            gpu_usd: usd(gpu),
            team_tags: ["team", "cost-center", "cost_center", "costcenter"].map(str::to_owned).to_vec(),
            account_teams: BTreeMap::new(),
        }
    }
}

impl CostsConfig {
    /// What costs are divided by; `None` where one is no amount, which is refused at the start.
    #[must_use]
    pub fn weights(&self) -> Option<Weights> {
        let weight = |usd: &str| u32::try_from(usd.parse::<Usd>().ok()?.micros()).ok();
        Some(Weights { core: weight(&self.core_usd)?, gib: weight(&self.gib_usd)?, gpu: weight(&self.gpu_usd)? })
    }

    /// The first key that cannot work, and why.
    pub(super) fn wrong(&self) -> Option<(&'static str, String)> {
        let all =
            [("costs.core_usd", &self.core_usd), ("costs.gib_usd", &self.gib_usd), ("costs.gpu_usd", &self.gpu_usd)];
        for (key, usd) in all {
            let micros = usd.parse::<Usd>().map(Usd::micros);
            // Without a price of cores, a machine whose memory was not measured would have nothing to be split by.
            let least = i64::from(key == "costs.core_usd");
            if !micros.is_ok_and(|micros| (least..=i64::from(u32::MAX)).contains(&micros)) {
                return Some((
                    key,
                    format!(
                        "`{usd}` is not an amount from {} to 4294 such as \"0.031611\"",
                        if least > 0 { "0.000001" } else { "0" }
                    ),
                ));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_rule_and_what_cannot_work_is_refused_by_its_key() {
        let config = CostsConfig::default();
        assert_eq!((config.weights(), config.wrong()), (Some(Weights::default()), None));
        assert_eq!(config.gpu_usd, "0.95");
        let wrong = |config: CostsConfig| config.wrong().map(|(key, _)| key);
        for usd in ["", "cheap", "-1", "5000", "0"] {
            assert_eq!(wrong(CostsConfig { core_usd: usd.into(), ..config.clone() }), Some("costs.core_usd"), "{usd}");
        }
        assert_eq!(wrong(CostsConfig { gpu_usd: "0".into(), ..config.clone() }), None);
        assert_eq!(wrong(CostsConfig { gib_usd: "x".into(), ..config }), Some("costs.gib_usd"));
    }
}
