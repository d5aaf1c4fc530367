//! Two levels: the members of a node exchange data among themselves, and only one member of each
//! node, its leader, with other nodes. For long vectors, several members of each node may do so.
//!
//! V. Tipparaju, J. Nieplocha, D. Panda: Fast collective operations using shared and remote memory
//! access protocols on clusters. International Parallel and Distributed Processing Symposium
//! (IPDPS), 2003.
//!
//! Members of a node need not be neighbors in the team, and nodes may have different numbers of
//! members: [`Nodes`] has the position of a member. A plan of two levels consists of plans of one
//! level, over the members of a node or over one member of each node. All messages are sent along
//! [`Edge::Pair`](crate::Edge::Pair), because members at a distance in such a plan are at another
//! distance in the team.

use crate::{Step, binomial, dissemination};
use nodes::{in_lane, on_node};

mod nodes;
mod reduce;

pub use nodes::{Levels, NodeBlocks, NodeLists, Nodes};
pub use reduce::{all_reduce, all_reduce_piece, all_reduce_short, lanes};

/// Returns the plan of a sync in 2 ⌈log2 p⌉ + ⌈log2 m⌉ rounds on m nodes of up to p members: no
/// member leaves it before all have entered it.
pub fn sync(team: impl Nodes) -> impl Iterator<Item = Step> + Clone {
    let Levels {
        nodes,
        node,
        members,
        local,
        ..
    } = team.levels();
    let gather = binomial::gather(members, local, local);
    let leaders = (local == 0).then(|| dissemination::sync(nodes, node));
    let release = binomial::release(members, local, local);

    gather
        .map(on_node(team))
        .chain(leaders.into_iter().flatten().map(in_lane(team)))
        .chain(release.map(on_node(team)))
}

#[cfg(test)]
mod tests;
