//! Answers of a later day: a stand-in's answer, changed in one place.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Moto;

/// A place within an answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    /// Names of members and numbers of elements.
    pub path: Vec<Value>,
    /// `text`, `structure` or `other`.
    pub holds: String,
}

impl Moto {
    /// All places of the last unchanged answer to a call.
    ///
    /// # Panics
    ///
    /// When there was none.
    pub async fn places(&self, service: &str, action: &str) -> Vec<Place> {
        let answer = self.post("places", json!({"service": service, "action": action})).await;
        serde_json::from_value(answer).expect("places of an answer")
    }

    /// From now on the call's answers are changed in this place: `remove`, `word` or `extra`.
    ///
    /// # Panics
    ///
    /// When the server refuses.
    pub async fn change_answers(&self, service: &str, action: &str, place: &Place, how: &str) {
        let change = json!({"service": service, "action": action, "path": place.path, "how": how});
        self.post("mutate", json!({"change": change})).await;
    }
}
