//! The pipelined chain: a broadcast of very long vectors in segments, each of which is on its way
//! while the next is sent.
//!
//! J. Watts, R. van de Geijn: A pipelined broadcast for multidimensional meshes. Parallel
//! Processing Letters 5 (2), 1995.

use crate::edge::{from_behind, to_ahead};
use crate::index::behind;
use crate::share::share;
use crate::{Buffer, Step};

/// The plan of a broadcast of `parts` parts of `Source` of `root` in n - 2 + `segments` rounds; a
/// member puts one vector. They arrive in `Dest` of every other member; `Dest` of the root itself
/// is not touched.
pub fn broadcast(
    n: u32,
    me: u32,
    root: u32,
    parts: u32,
    segments: u32,
) -> impl Iterator<Item = Step> + Clone {
    let rank = behind(n, me, root);
    let from = if rank == 0 { Buffer::Source } else { Buffer::Dest };
    (0..segments.min(parts)).flat_map(move |segment| {
        let wait = (rank != 0).then(|| Step::Wait { peer: from_behind(n, me, 0) });
        let parts = share(segments.min(parts), segment, parts);
        let put = (rank < n - 1).then(|| Step::put_to_dest(to_ahead(n, me, 0), from, parts));
        wait.into_iter().chain(put)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inner_member_passes_on_each_segment_when_it_came() {
        let wait = Step::Wait { peer: from_behind(3, 0, 0) };
        let put = |parts| Step::put_to_dest(to_ahead(3, 0, 0), Buffer::Dest, parts);
        let steps: Vec<_> = broadcast(3, 0, 2, 5, 2).collect();
        assert_eq!(steps, [wait, put((0, 2)), wait, put((2, 5))]);
    }

    #[test]
    fn the_ends_only_send_and_only_receive() {
        assert!(broadcast(3, 2, 2, 5, 9).all(|step| matches!(step, Step::Put { .. })));
        assert!(broadcast(3, 1, 2, 5, 9).all(|step| matches!(step, Step::Wait { .. })));
        assert_eq!(broadcast(3, 1, 2, 5, 9).count(), 5);
        assert_eq!(broadcast(1, 0, 0, 5, 2).count(), 0);
    }
}
