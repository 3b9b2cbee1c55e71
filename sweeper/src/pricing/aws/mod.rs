//! The AWS price list: by its API or from a file.

pub(super) mod api;
pub(super) mod list;
