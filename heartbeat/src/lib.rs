//! The wire contract between a node agent and the sweeper.
//!
//! It refuses to know how a number was measured or what it means for a verdict. What a heartbeat may
//! cost at most stands in [`envelope`]. The contract's text is `proto/heartbeat.proto`.

pub mod api;
pub mod attestation;
mod decoded_size;
pub mod envelope;
pub mod identity;
mod json;
mod packing;
mod stored;
pub mod sts;
pub mod text;

/// The generated messages of `proto/heartbeat.proto`.
#[expect(clippy::all, reason = "generated code")]
pub mod wire {
    include!(concat!(env!("OUT_DIR"), "/cloudsweeper.heartbeat.v1.rs"));
}

pub use envelope::{DecodeError, Unpacked, decode, encode, unpack};
pub use identity::{BootId, IdentityError, NodeId};
pub use stored::{pack_one, unpack_one};
