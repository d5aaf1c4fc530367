//! Chooses among the algorithms of a collective.
//!
//! A table decides: the first row whose conditions hold names the algorithm. The first rows are
//! those that the user forces, then the rows of the user's file, then the built-in ones. Conditions
//! depend on facts that are the same on every PE, never on load, time or the state of one PE.
//! Otherwise members would run plans that do not match.

mod algorithms;
mod facts;
mod row;
mod table;

pub use algorithms::{
    Algorithm, AllGatherAlgorithm, AllReduceAlgorithm, AllToAllAlgorithm, BroadcastAlgorithm,
    GatherAlgorithm, ReduceScatterAlgorithm, ReduceToAlgorithm, ScanAlgorithm, ScatterAlgorithm,
    SyncAlgorithm,
};
pub use facts::{ChoiceFacts, LINE_MEMBERS, SHORT_MAX_BYTES};
pub use row::{Row, RowError, RowOrigin};
pub use table::{Listed, Table, Tabled};
