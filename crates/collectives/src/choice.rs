//! Which algorithm to use where there are several.
//!
//! A table says it: rows of conditions, of which the first that holds wins. What a user forces is a
//! row before all others, and what a user has measured goes before the rows that are built in. A
//! condition is about facts that are the same on every PE, else members would run plans that do not
//! fit together: never about load, time, or anything a PE knows of itself alone.

mod algorithms;
mod facts;
mod row;
mod table;

pub use algorithms::{
    Algorithm, AllGatherAlgorithm, AllReduceAlgorithm, AllToAllAlgorithm, BroadcastAlgorithm,
    ScanAlgorithm, SyncAlgorithm,
};
pub use facts::{ChoiceFacts, LINE_MEMBERS, SHORT_MAX_BYTES};
pub use row::{Row, RowError, RowOrigin};
pub use table::{Listed, Table, Tabled};
