//! The own block of a member in an all-gather.

use crate::{Buffer, Step};

/// Returns the plan of an all-gather, given its rounds, in which member `me` first puts its own
/// block from `Dest`. The plan puts it from `Source` and copies it to `Dest` after that, so that
/// the peer does not wait for the copy.
pub(crate) fn with_own_block(
    me: u32,
    mut rounds: impl Iterator<Item = Step> + Clone,
) -> impl Iterator<Item = Step> + Clone {
    let from = Buffer::Source.at(0);
    let first_put = rounds.next().map(|step| match step {
        Step::Put {
            peer, to, count, ..
        } => Step::Put {
            peer,
            from,
            to,
            count,
        },
        _ => unreachable!("a member sends its own block first"),
    });

    let own = Step::Copy {
        from,
        to: Buffer::Dest.at(me),
        count: 1,
    };
    first_put.into_iter().chain([own]).chain(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Partner;

    #[test]
    fn the_block_is_sent_before_it_is_copied() {
        let peer = Partner::exchange(1, 0);
        let put = |from| Step::Put {
            peer,
            from,
            to: Buffer::Dest.at(0),
            count: 1,
        };
        let copy = Step::Copy {
            from: Buffer::Source.at(0),
            to: Buffer::Dest.at(0),
            count: 1,
        };
        let wait = Step::Wait { peer };

        let rounds = [put(Buffer::Dest.at(0)), wait];
        let steps: Vec<_> = with_own_block(0, rounds.into_iter()).collect();
        assert_eq!(steps, [put(Buffer::Source.at(0)), copy, wait]);

        let alone: Vec<_> = with_own_block(0, std::iter::empty()).collect();
        assert_eq!(alone, [copy]);
    }
}
