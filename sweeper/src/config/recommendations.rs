//! Settings of what is recommended.

use jiff::tz::TimeZone;
use model::Usd;
use recommender::policy::Policy;
use serde::{Deserialize, Serialize};

/// `[recommendations]`: how much is left free, and what is worth a person's time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecommendationsConfig {
    /// So many per cent of what a recommended type offers stay free above what was needed.
    pub headroom_per_cent: u8,
    /// What saves less in a month is not recommended, in US dollars as text.
    pub least_saving_usd: String,
    /// By whose clock a weekend must have been observed: an IANA time zone.
    pub timezone: String,
}

impl Default for RecommendationsConfig {
    fn default() -> Self {
        let Policy { headroom_per_cent, least_saving, .. } = Policy::default();
        Self {
            headroom_per_cent,
            // As `Usd` is read, and without its sign.
            least_saving_usd: least_saving.to_string().replace('$', ""),
            timezone: "UTC".to_owned(),
        }
    }
}

impl RecommendationsConfig {
    /// What must be saved at least; `None` where it is no amount, which is refused at the start.
    #[must_use]
    pub fn least_saving(&self) -> Option<Usd> {
        self.least_saving_usd.parse::<Usd>().ok().filter(|usd| usd.micros() >= 0)
    }

    /// By whose clock a weekend must have been observed; `None` for a name that no time zone has.
    #[must_use]
    pub fn zone(&self) -> Option<TimeZone> {
        // The usual one without a walk through all zones of this machine, which took a tenth of each command's start.
        if self.timezone == "UTC" { Some(TimeZone::UTC) } else { TimeZone::get(&self.timezone).ok() }
    }

    /// The first key that cannot work, and why.
    pub(super) fn wrong(&self) -> Option<(&'static str, String)> {
        if !(1..=90).contains(&self.headroom_per_cent) {
            let why = format!("must be from 1 to 90, and is {}", self.headroom_per_cent);
            return Some(("recommendations.headroom_per_cent", why));
        }
        if self.least_saving().is_none() {
            let why = format!("`{}` is not an amount such as \"5\"", self.least_saving_usd);
            return Some(("recommendations.least_saving_usd", why));
        }
        if self.zone().is_none() {
            let why = "is not an IANA time zone such as \"UTC\" or \"Europe/Berlin\"".to_owned();
            return Some(("recommendations.timezone", why));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_rules_and_what_cannot_work_is_refused_by_its_key() {
        let config = RecommendationsConfig::default();
        assert_eq!((config.least_saving(), config.wrong()), (Some(Policy::default().least_saving), None));
        let wrong = |config: RecommendationsConfig| config.wrong().map(|(key, _)| key);
        for headroom_per_cent in [0, 91, 255] {
            let config = RecommendationsConfig { headroom_per_cent, ..config.clone() };
            assert_eq!(wrong(config), Some("recommendations.headroom_per_cent"));
        }
        for usd in ["", "cheap", "-1"] {
            let config = RecommendationsConfig { least_saving_usd: usd.into(), ..config.clone() };
            assert_eq!(wrong(config), Some("recommendations.least_saving_usd"), "{usd}");
        }
        let nowhere = RecommendationsConfig { timezone: "Mars/Olympus".into(), ..config.clone() };
        assert_eq!(wrong(nowhere), Some("recommendations.timezone"));
        assert_eq!(wrong(RecommendationsConfig { least_saving_usd: "0".into(), ..config }), None);
    }
}
