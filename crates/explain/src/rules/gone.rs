//! PEs that take part in nothing any more, though others wait for them, and hosts that do not
//! answer.

use crate::cause::{Cause, Kind, states};
use crate::graph::Graph;
use crate::job::Situation;

pub fn find(graph: &Graph) -> Vec<Cause> {
    let silent = states(graph, Kind::HostSilent, false, |of| {
        matches!(of.situation, Situation::HostSilent(_))
    });
    let gone = states(graph, Kind::Gone, true, |of| of.situation.is_gone());
    silent.into_iter().chain(gone).collect()
}
