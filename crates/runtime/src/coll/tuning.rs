//! For a program that measures algorithms: the facts of a team, and a change of the table.

use crate::call::Call;
use crate::coll::entry::CollectiveEntry;
use crate::job;
use crate::job::handle::TeamHandle;
use crate::teams::team;
use rushmem_collectives::choice::{ChoiceFacts, Table};

/// Returns what the choices for a team follow from.
pub fn facts(call: Call, team: TeamHandle) -> ChoiceFacts {
    CollectiveEntry::new(call, &team::find(call, "team", team)).1.facts()
}

/// Uses `table` for all further collectives, which all PEs must do between the same two. Returns
/// the former.
pub fn replace(call: Call, table: &'static Table) -> &'static Table {
    job::require(call).algorithms.replace(table)
}
