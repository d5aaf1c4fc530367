//! PEs that are outside the library while others wait for them.

use crate::cause::{Cause, Kind, states};
use crate::graph::Graph;
use crate::job::{Pe, Situation};

pub fn find(graph: &Graph) -> Vec<Cause> {
    use Situation::{Computes, Elsewhere, NoStatus, Sleeps, Starting, Uninitialized};
    let kind = |of: &Pe| match of.situation {
        NoStatus | Uninitialized | Starting => Some(Kind::NotStarted),
        Sleeps => Some(Kind::Sleeps),
        Computes => Some(Kind::Computes),
        Elsewhere => Some(Kind::Elsewhere),
        _ => of.is_busy().then_some(Kind::Computes),
    };
    let kinds = [Kind::NotStarted, Kind::Sleeps, Kind::Computes, Kind::Elsewhere];
    let of_kind = |wanted| states(graph, wanted, true, |of| kind(of) == Some(wanted));
    kinds.into_iter().filter_map(of_kind).collect()
}
