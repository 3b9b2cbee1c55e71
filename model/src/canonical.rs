//! One text per value: JSON with sorted keys and no spaces, so that a hash of it means something.
//!
//! Keys are sorted here rather than left to `serde_json`, whose map order depends on a feature that any other crate in
//! the build may switch on. Floats are refused by the types that are hashed: none holds one.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The SHA-256 of the canonical text, as 64 lower-case hexadecimal digits.
pub(crate) fn sha256_hex(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (n, (key, value)) in entries.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_in_which_keys_were_written_does_not_show() {
        let one = json!({"b": [1, {"y": null, "x": "\"quoted\""}], "a": true});
        let mut text = String::new();
        write(&one, &mut text);
        assert_eq!(text, r#"{"a":true,"b":[1,{"x":"\"quoted\"","y":null}]}"#);
        assert_eq!(sha256_hex(&json!({"a": 1, "b": 2})), sha256_hex(&json!({"b": 2, "a": 1})));
    }

    #[test]
    fn the_hash_is_the_one_that_sha256sum_prints() {
        // printf '%s' '{"a":1}' | sha256sum
        assert_eq!(sha256_hex(&json!({"a": 1})), "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862");
    }
}
