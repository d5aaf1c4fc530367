//! From the reports on all PEs to a text: a table of what they do, and who waits for whom.

use crate::causes;
use crate::conclusion;
use crate::graph::Graph;
use crate::job::Job;
use crate::report::PeReport;
use crate::steps::Steps;
use crate::table;

/// Explains a job of `n_pes` PEs: a table, an empty line and the conclusion. Nothing is concluded
/// on PEs without a report, which are on other hosts.
pub fn explain(n_pes: u32, reports: &[PeReport]) -> String {
    let job = Job::new(n_pes, reports);
    let steps = Steps::new(&job);
    let graph = Graph::new(&job, &steps);
    let causes = causes::find(&job, &steps, &graph);
    let mut lines = table::table(&job);
    lines.push(String::new());
    lines.extend(conclusion::conclusion(&job, &steps, &graph, &causes));
    lines.join("\n")
}
