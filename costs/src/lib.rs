//! What machines cost, split over what used them.
//!
//! Each instance and hour has a bill: the price that was in force times the seconds that are billed ([`hours`]). It is split ([`split`]) over what used
//! the machine's cores, memory and GPUs in that hour, what was reserved and not used, what nobody used, and what nobody saw. The parts are whole
//! micro-dollars and come to exactly the bill. They are added up by one or two dimensions ([`Costs`]). What a day of a machine comes to can be added up beforehand
//! and taken up in the place of its hours ([`DaySum`]).
//!
//! It refuses to guess: time that no agent saw is *unattributed* and never spread over what was seen, and what has no known price has no amount. Pure: no
//! input or output, no clock.

mod adding;
mod apportion;
mod dimension;
mod kept;
mod line;
mod split;
mod table;
mod texts;
mod time;

pub use apportion::apportion;
pub use dimension::{By, Dimension, NotBy, Place, Subject, Value};
pub use kept::{Damaged, DaySum, Days, Fingerprint, KeptDay, Packed, Row, View, Whole, fingerprints, pack};
pub use line::{Group, Kind, Line, Reason, Report};
pub use split::{Measure, Part, Seen, To, Used, Weights, split};
pub use table::Costs;
pub use time::{
    Billed, Hour, MIN_BILLED_S, NOT_LISTED, PriceFrom, SECONDS_PER_HOUR, Stretch, Version, hours, priced, stretches,
};
