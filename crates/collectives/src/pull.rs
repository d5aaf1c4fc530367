//! A broadcast that is pulled: all members get the vector out of the root's memory at once.
//!
//! R. L. Graham, G. Shipman: MPI support for multi-core architectures: Optimized shared memory
//! collectives. Recent Advances in Parallel Virtual Machine and Message Passing Interface
//! (EuroPVM/MPI), LNCS 5205, 2008.

use crate::index::behind;
use crate::{Buffer, Step, binomial};

/// The plan of a broadcast of `parts` parts of `Source` of `root` in 2 ⌈log2 n⌉ rounds: all other
/// members get them at once. They arrive in `Dest` of every other member; `Dest` of the root itself
/// is not touched. The root ends it when all have them.
pub fn broadcast(n: u32, me: u32, root: u32, parts: u32) -> impl Iterator<Item = Step> + Clone {
    get_from(Buffer::Source, n, me, root, parts)
}

/// The same of what the root has in any buffer.
pub(crate) fn get_from(
    buffer: Buffer,
    n: u32,
    me: u32,
    root: u32,
    parts: u32,
) -> impl Iterator<Item = Step> + Clone {
    let rank = behind(n, me, root);
    let get = (rank != 0 && parts > 0).then_some(Step::Get {
        peer: root,
        from: buffer.at(0),
        to: Buffer::Dest.at(0),
        count: parts,
        with: None,
    });
    binomial::release(n, me, rank).chain(get).chain(binomial::gather(n, me, rank))
}
