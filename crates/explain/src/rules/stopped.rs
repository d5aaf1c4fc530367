//! PEs that a signal, a debugger or a disk has stopped.

use crate::cause::{Cause, Kind, states};
use crate::graph::Graph;
use crate::job::Situation;

pub fn find(graph: &Graph) -> Vec<Cause> {
    let mut stopped = states(graph, Kind::Stopped, false, |of| {
        matches!(of.situation, Situation::Stopped | Situation::Traced)
    });
    if let Some(Cause { pes, description, .. }) = &mut stopped {
        let continues = if pes.len() == 1 { "It continues" } else { "They continue" };
        let sentences = &mut description.sentences;
        sentences.push(format!("{continues} after the signal CONT or the debugger's command."));
    }
    let on_disk =
        states(graph, Kind::WaitsForDisk, false, |of| of.situation == Situation::WaitsForDisk);
    stopped.into_iter().chain(on_disk).collect()
}
