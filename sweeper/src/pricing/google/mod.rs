//! What machines of Google Cloud cost: the sum of what they are billed for (cores, memory, disks of the host, accelerators), each by
//! exactly one SKU of the catalogue, or not known.
//!
//! The catalogue names no type of machine: what a SKU is for stands in its description alone. So a description is taken only if all of
//! it is known: `[Spot Preemptible ]NAME running in PLACE`, with a name of [`series`]. Commitments, sole tenancy, reservations, Dynamic
//! Workload Scheduler, premiums and licences have other names, and are passed over; two SKUs of one name, region and way of buying
//! are ambiguous. List prices: sustained and committed use are not heeded, as savings plans of AWS are not.

mod list;
mod machine;
mod series;

pub use list::{Filter, SkuList};
pub use machine::{Bill, bill};

#[cfg(test)]
mod tests;
