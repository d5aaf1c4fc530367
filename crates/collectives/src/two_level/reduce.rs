//! All-reduces over two levels, for vectors of three lengths.
//!
//! Vectors of a few bytes are sent to a node's leader and back together with the signals of a tree.
//! Longer ones are read in place: a leader combines the sources of the members of its node, the
//! leaders combine their results, and the other members copy the result from their leader. Long
//! ones are divided among lanes, so that several members of a node combine and send.
//!
//! J. L. Träff, S. Hunold: Decomposing MPI collectives for exploiting multi-lane communication.
//! IEEE International Conference on Cluster Computing (CLUSTER), 2020.

use super::nodes::{Levels, Nodes, in_lane, on_node};
use crate::edge::{from_ahead, from_behind, to_ahead, to_behind};
use crate::index::{log2_ceil, share};
use crate::recursive_doubling::put;
use crate::{Buffer, Operand, Span, Step, binomial, rabenseifner, recursive_doubling};

const ACCUMULATOR: Span = Buffer::Accumulator.at(0);

/// The minimum number of parts that the member of a lane reads, of all members of its node
/// together, if there is more than one lane.
const LANE_PARTS: u64 = 2048;
/// The number of parts that a member combines at a time: few enough to stay in its caches.
const BLOCK_PARTS: u32 = 64;

/// Returns the plan of an all-reduce in 2 ⌈log2 p⌉ rounds on a node of p members and those of
/// [`recursive_doubling::all_reduce`] over the leaders. No member leaves it before all have entered
/// it.
///
/// The accumulator holds the own contribution at the start and the result at the end. Every message
/// has a receive buffer of its own.
pub fn all_reduce_short(team: impl Nodes) -> impl Iterator<Item = Step> + Clone {
    let Levels {
        nodes,
        node,
        members,
        local,
        ..
    } = team.levels();

    // The leaders use the first edges, and one for the fold; nodes need not have the same number of
    // rounds.
    let from_below = log2_ceil(nodes) as u8 + 1;
    let from_above = from_below + log2_ceil(members) as u8;

    let up = binomial::to_children(members, local).flat_map(move |k| {
        let peer = from_ahead(members, local, k);
        [
            Step::Wait { peer },
            Step::Reduce {
                receive_buffer: from_below + k,
                receive_buffer_is_left: false,
            },
        ]
    });

    let parent = (local != 0).then(|| {
        let k = binomial::to_parent(local);
        [
            put(to_behind(members, local, k), from_below + k),
            Step::Wait {
                peer: from_behind(members, local, k),
            },
            Step::Copy {
                from: Buffer::Receive(from_above).at(0),
                to: ACCUMULATOR,
                count: 1,
            },
        ]
    });

    let leaders = (local == 0).then(|| recursive_doubling::all_reduce(nodes, node));

    let down = binomial::to_children(members, local)
        .rev()
        .map(move |k| put(to_ahead(members, local, k), from_above));

    up.chain(parent.into_iter().flatten())
        .map(on_node(team))
        .chain(leaders.into_iter().flatten().map(in_lane(team)))
        .chain(down.map(on_node(team)))
}

/// Returns the plan of an all-reduce of one part that fits a receive buffer, in 3 ⌈log2 p⌉ rounds
/// on a node of p members, and those of [`recursive_doubling::all_reduce`] over the leaders. No
/// member leaves it before all have entered it.
///
/// If `are_receive_buffers_shared` with other teams, each leader first signals the leaders that
/// will put to it that it has entered, and waits for their signals after its node has entered. A
/// source may be the destination.
pub fn all_reduce_piece(
    team: impl Nodes,
    are_receive_buffers_shared: bool,
) -> impl Iterator<Item = Step> + Clone {
    let Levels {
        nodes, node, local, ..
    } = team.levels();
    let is_leader = local == 0;

    // The signals come first and the waits late, so that the messages travel while the node
    // combines its contributions.
    let entry = (is_leader && are_receive_buffers_shared)
        .then(|| recursive_doubling::entry(nodes, node))
        .into_iter()
        .flatten();
    let signals = entry
        .clone()
        .filter(|step| matches!(step, Step::Signal { .. }));
    let waits = entry.filter(|step| matches!(step, Step::Wait { .. }));

    // The leaders combine their results in the accumulator.
    let leaders = is_leader.then(|| {
        let load = Step::Copy {
            from: Buffer::Dest.at(0),
            to: ACCUMULATOR,
            count: 1,
        };
        let store = Step::Copy {
            from: ACCUMULATOR,
            to: Buffer::Dest.at(0),
            count: 1,
        };
        std::iter::once(load)
            .chain(recursive_doubling::all_reduce(nodes, node))
            .chain([store])
    });
    let leaders = leaders.into_iter().flatten();

    signals
        .map(in_lane(team))
        .chain(entered(team, 1))
        .chain(combined(team, 1, 1))
        .chain(waits.chain(leaders).map(in_lane(team)))
        .chain(spread(team, 1, 1))
}

/// Returns the number of lanes to use for a vector of `parts` parts, at least 1. Each lane costs
/// messages, so short vectors have few.
pub fn lanes(team: impl Nodes, parts: u32) -> u32 {
    let max_lanes = u64::from(team.levels().lanes);
    // The member of a lane reads its share from all members of its node: `max_lanes` or more.
    let worthwhile = u64::from(parts) * max_lanes / LANE_PARTS;
    worthwhile.clamp(1, max_lanes) as u32
}

/// Returns the plan of an all-reduce of a vector of `parts` parts: each lane combines its share
/// of them on each node and then runs [`rabenseifner::all_reduce`] over the nodes. No member
/// leaves it before all have entered it.
///
/// A source may be the destination: before a lane has its result, its share is read and written by
/// the members of the lane alone.
pub fn all_reduce(team: impl Nodes, parts: u32, lanes: u32) -> impl Iterator<Item = Step> + Clone {
    let Levels {
        nodes, node, local, ..
    } = team.levels();

    // The plan over the nodes knows only the lane's share, from part 0 on.
    let over_nodes = (local < lanes).then(|| {
        let share = share(lanes, local, parts);
        rabenseifner::of_contributions_in(Buffer::Dest, nodes, node, share.end - share.start)
            .map(move |step| step.parts_after(share.start))
    });

    entered(team, lanes)
        .chain(combined(team, lanes, parts))
        .chain(over_nodes.into_iter().flatten().map(in_lane(team)))
        .chain(spread(team, lanes, parts))
}

/// Returns the plan by which the members of the lanes learn that all members of their node have
/// entered.
fn entered(team: impl Nodes, lanes: u32) -> impl Iterator<Item = Step> + Clone {
    let Levels { members, local, .. } = team.levels();
    let gather = binomial::gather(members, local, local);
    let release = (lanes > 1).then(|| binomial::release(members, local, local));
    gather
        .chain(release.into_iter().flatten())
        .map(on_node(team))
}

/// Returns the plan by which the member of a lane combines the lane's share of the sources of all
/// members of its node, and stores the result in its destination.
fn combined(team: impl Nodes, lanes: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    let Levels { members, local, .. } = team.levels();
    let share = if local < lanes {
        share(lanes, local, parts)
    } else {
        0..0
    };

    let end = share.end;
    let blocks = share.step_by(BLOCK_PARTS as usize);
    let combine = blocks.flat_map(move |first| {
        let count = BLOCK_PARTS.min(end - first);
        combined_block(members, local, first, count)
    });
    combine.map(on_node(team))
}

/// Returns the plan by which a member combines `count` parts of the sources of the members of its
/// node, of which it is number `local`.
fn combined_block(
    members: u32,
    local: u32,
    first: u32,
    count: u32,
) -> impl Iterator<Item = Step> + Clone {
    let from = Buffer::Source.at(first);
    let to = Buffer::Dest.at(first);
    let alone = (members == 1).then_some(Step::Copy { from, to, count });

    // After the own contribution those behind it follow, up to the last one, then those before it,
    // down to the first: so each is adjacent to the run that is combined already.
    let others = (local + 1..members).chain((0..local).rev()).enumerate();
    let gets = others.map(move |(turn, peer)| {
        // The first get combines with the own contribution, the next ones with the result.
        let buffer = if turn == 0 {
            Buffer::Source
        } else {
            Buffer::Dest
        };
        Step::Get {
            peer,
            from,
            to,
            count,
            with: Some(Operand {
                buffer,
                is_left: peer > local,
            }),
        }
    });
    alone.into_iter().chain(gets)
}

/// Returns the plan by which all members of a node copy the results of the lanes to their
/// destinations.
fn spread(team: impl Nodes, lanes: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    let Levels { members, local, .. } = team.levels();
    let gather = move || binomial::gather(members, local, local);
    let release = move || binomial::release(members, local, local);
    let gets = (0..lanes)
        .filter(move |&lane| lane != local)
        .filter_map(move |lane| {
            let share = share(lanes, lane, parts);
            if share.is_empty() {
                return None;
            }

            let span = Buffer::Dest.at(share.start);
            Some(Step::Get {
                peer: lane,
                from: span,
                to: span,
                count: share.end - share.start,
                with: None,
            })
        });

    // The results of several lanes are complete only when the members of all lanes have signaled.
    // The last gather keeps a member from changing its destination before the others have read it.
    let are_several = lanes > 1;
    let meet = are_several.then(gather).into_iter().flatten();
    let leave = gather().chain(are_several.then(release).into_iter().flatten());
    meet.chain(release())
        .chain(gets)
        .chain(leave)
        .map(on_node(team))
}
