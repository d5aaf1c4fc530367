//! The ordering rules of operations to the same peer.

use crate::operation::Kind;
use crate::profile::Profile;
use libfabric_sys as fi;

/// The classes of operations that libfabric orders. An atomic operation may be in two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Read,
    Write,
    Send,
}

fn classes(kind: Kind) -> &'static [Class] {
    match kind {
        Kind::Read => &[Class::Read],
        Kind::Write => &[Class::Write],
        Kind::Fetch => &[Class::Read, Class::Write],
        Kind::Send => &[Class::Send],
    }
}

/// The flags that order two operations: of any kind, both RMA, and both atomic.
fn orders(later: Class, earlier: Class) -> [u64; 3] {
    match (later, earlier) {
        (Class::Read, Class::Read) => {
            [fi::FI_ORDER_RAR, fi::FI_ORDER_RMA_RAR, fi::FI_ORDER_ATOMIC_RAR]
        }
        (Class::Read, Class::Write) => {
            [fi::FI_ORDER_RAW, fi::FI_ORDER_RMA_RAW, fi::FI_ORDER_ATOMIC_RAW]
        }
        (Class::Write, Class::Read) => {
            [fi::FI_ORDER_WAR, fi::FI_ORDER_RMA_WAR, fi::FI_ORDER_ATOMIC_WAR]
        }
        (Class::Write, Class::Write) => {
            [fi::FI_ORDER_WAW, fi::FI_ORDER_RMA_WAW, fi::FI_ORDER_ATOMIC_WAW]
        }
        (Class::Read, Class::Send) => [fi::FI_ORDER_RAS, 0, 0],
        (Class::Write, Class::Send) => [fi::FI_ORDER_WAS, 0, 0],
        (Class::Send, Class::Read) => [fi::FI_ORDER_SAR, 0, 0],
        (Class::Send, Class::Write) => [fi::FI_ORDER_SAW, 0, 0],
        (Class::Send, Class::Send) => [fi::FI_ORDER_SAS, 0, 0],
    }
}

/// Whether an operation must wait for an earlier one to the same peer. Both have a length.
pub(crate) fn must_wait(
    profile: &Profile,
    (later, later_nbytes): (Kind, usize),
    (earlier, earlier_nbytes): (Kind, usize),
) -> bool {
    if later_nbytes.max(earlier_nbytes) > profile.order_up_to {
        return later == Kind::Send
            && earlier == Kind::Send
            && profile.order & fi::FI_ORDER_SAS != 0;
    }
    let pairs = classes(later).iter().flat_map(|&l| classes(earlier).iter().map(move |&e| (l, e)));
    pairs.into_iter().any(|(l, e)| {
        let [any, remote, atomic] = orders(l, e);
        let same_kind = match (later == Kind::Fetch, earlier == Kind::Fetch) {
            (true, true) => atomic,
            (false, false) => remote,
            _ => 0,
        };
        profile.order & (any | same_kind) != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ALL;

    fn waits(profile: &str, later: (Kind, usize), earlier: (Kind, usize)) -> bool {
        let profile = ALL.iter().find(|known| known.text() == profile).expect("a profile");
        must_wait(profile, later, earlier)
    }

    #[test]
    fn profiles_have_the_orders_of_their_providers() {
        let (write, read, send, fetch) =
            ((Kind::Write, 8), (Kind::Read, 8), (Kind::Send, 8), (Kind::Fetch, 8));
        assert!(
            waits("cxi", write, write) && waits("cxi", send, send) && waits("cxi", fetch, fetch)
        );
        assert!(
            !waits("cxi", read, write) && !waits("cxi", send, write) && !waits("cxi", write, read)
        );
        assert!(!waits("efa", write, write) && !waits("efa", send, send));
        assert!(waits("opx", fetch, fetch) && !waits("opx", write, write));
        assert!(waits("psm3", read, write) && !waits("psm3", send, write));
        assert!(!waits("psm3", (Kind::Write, 5000), write));
        assert!(waits("mrail", send, write) && !waits("mrail", write, read));
        assert!(waits("copy", send, (Kind::Write, 5000)));
    }
}
