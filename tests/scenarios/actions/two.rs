//! A site, and two people: what nothing undoes takes both.

use crate::site::Site;
use std::path::PathBuf;

pub(crate) struct TwoPeople {
    pub(crate) site: Site,
    pub(crate) ada: PathBuf,
    pub(crate) grace: PathBuf,
    /// Stands in the title of the plan that this is about.
    title: &'static str,
}

impl TwoPeople {
    pub(crate) async fn of(site: Site, title: &'static str) -> Self {
        let (ada, grace) = (site.enrol("ada").await, site.enrol("grace").await);
        Self { site, ada, grace, title }
    }

    pub(crate) async fn plan(&self) -> String {
        self.site.plan_to(self.title).await
    }

    pub(crate) async fn both_approve(&self, plan: &str) {
        self.site.approve(plan, &self.ada).await;
        self.site.approve(plan, &self.grace).await;
    }

    /// That nothing was done by this call, and why not.
    pub(crate) async fn is_voided(&self, call: &str, plan: &str, words: &str) {
        let ended = self.site.ended(plan).await;
        let told = ended["outcome"].as_str().unwrap_or_default();
        assert!(ended["state"] == "voided" && told.contains(words), "`{words}` is not in {ended:#}");
        assert_eq!((self.site.called(call).await.len(), self.site.state().await.as_str()), (0, "running"), "{words}");
    }
}
