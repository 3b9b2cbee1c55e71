//! Who speaks for a node: how it is attested, which key is bound to it, who may claim it.
//!
//! A join secret says *may join*, a key says *the same as before*, evidence of a cloud says *this machine*. A node is bound to the key of
//! its first join; whoever claims it later without that key is refused, and the node is *disputed*. Pure, but for [`challenge`], which
//! draws random bytes, and [`evidence`], which reads certificates at the start and Google's keys: no clock and no database. What a join
//! costs: one HMAC before anything else is looked at, one signature check (0.1 ms), and with evidence one more.

mod admission;
mod attestation;
pub mod challenge;
pub mod evidence;
mod key;
mod node;

pub use admission::{Decision, Held, Secret, decide};
pub use attestation::{Attestation, Identity};
pub use key::{KeyError, PublicKey};
pub use node::{Binding, Node};
