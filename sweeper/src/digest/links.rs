//! The link by which a reader stops the digests of a list: an address that takes a POST without a login (RFC 8058).
//!
//! Its token is an HMAC over list and address, by a secret that the first sweeper over a database makes up. The database looks a token up by its hash. It lets its holder do one thing: stop this list for this
//! address, which whoever runs the sweeper can undo. A token stands in a query, never in a path, because paths are logged.

use crate::store::{Store, StoreError, TokenHash};
use aws_lc_rs::hmac;
use rand::TryRngCore as _;
use url::Url;

/// Where the database has the secret.
const SETTING: &str = "digest_links_secret";
/// Where a link leads, on this server.
pub const UNSUBSCRIBE_PATH: &str = "/v1/digests/unsubscribe";

/// Why there are no links.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// The system gave no random bytes.
    #[error("the system gave no random bytes")]
    Random(#[source] rand::rand_core::OsError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What makes links.
#[derive(Clone)]
pub struct Links {
    key: hmac::Key,
    base: Url,
}

impl std::fmt::Debug for Links {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Links").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl Links {
    /// Of the server that people reach under this address, and the secret that all sweepers over this database share.
    ///
    /// # Errors
    /// See [`LinksError`].
    pub async fn open(store: &Store, base: Url) -> Result<Self, LinksError> {
        let mut bytes = [0_u8; 32];
        rand::rngs::OsRng.try_fill_bytes(&mut bytes).map_err(LinksError::Random)?;
        let secret = store.put_setting_if_absent(SETTING, &hex::encode(bytes)).await?;
        Ok(Self::new(&secret, base))
    }

    fn new(secret: &str, base: Url) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), base }
    }

    fn token(&self, list: &str, address: &str) -> String {
        // A list's name holds no such byte.
        hex::encode(hmac::sign(&self.key, format!("{list}\0{address}").as_bytes()))
    }

    /// By what the database knows the token of a reader.
    #[must_use]
    pub fn hash(&self, list: &str, address: &str) -> String {
        TokenHash::of(&self.token(list, address)).as_str().to_owned()
    }

    /// The link of a reader.
    #[must_use]
    pub fn link(&self, list: &str, address: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(UNSUBSCRIBE_PATH);
        url.query_pairs_mut().clear().append_pair("token", &self.token(list, address));
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(secret: &str) -> Links {
        Links::new(secret, "https://sweeper.example.org".parse().expect("a URL"))
    }

    #[test]
    fn each_reader_of_each_list_has_a_link_of_their_own() {
        let links_of = links("one");
        let link = links_of.link("everyone", "ann@example.org");
        let token = link.as_str().strip_prefix("https://sweeper.example.org/v1/digests/unsubscribe?token=");
        let token = token.expect("a token").to_owned();
        assert_eq!(token.len(), 64);
        assert_eq!(links_of.hash("everyone", "ann@example.org"), TokenHash::of(&token).as_str());
        assert_eq!(links("one").link("everyone", "ann@example.org"), link, "the same in each mail");
        for (list, address) in
            [("everyone", "bob@example.org"), ("other", "ann@example.org"), ("everyon", "eann@example.org")]
        {
            assert_ne!(links_of.link(list, address), link, "{list} {address}");
        }
        assert_ne!(links("two").link("everyone", "ann@example.org"), link);
        assert!(!format!("{links_of:?}").contains("one\""), "{links_of:?}");
    }
}
