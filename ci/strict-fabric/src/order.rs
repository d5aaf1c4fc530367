//! The ordering rules of operations to the same peer.

use crate::operation::OpKind;
use crate::profile::Profile;
use libfabric_sys as fi;

/// The classes of operations that libfabric orders. An atomic operation may be in two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Read,
    Write,
    Send,
}

fn classes(kind: OpKind) -> &'static [Class] {
    match kind {
        OpKind::Read => &[Class::Read],
        OpKind::Write => &[Class::Write],
        OpKind::Fetch => &[Class::Read, Class::Write],
        OpKind::Send => &[Class::Send],
    }
}

/// Returns the flags that order two operations of these classes: for operations of any kind, for
/// two RMA operations, and for two atomic ones.
fn order_flags(later: Class, earlier: Class) -> [u64; 3] {
    match (later, earlier) {
        (Class::Read, Class::Read) => [
            fi::FI_ORDER_RAR,
            fi::FI_ORDER_RMA_RAR,
            fi::FI_ORDER_ATOMIC_RAR,
        ],
        (Class::Read, Class::Write) => [
            fi::FI_ORDER_RAW,
            fi::FI_ORDER_RMA_RAW,
            fi::FI_ORDER_ATOMIC_RAW,
        ],
        (Class::Write, Class::Read) => [
            fi::FI_ORDER_WAR,
            fi::FI_ORDER_RMA_WAR,
            fi::FI_ORDER_ATOMIC_WAR,
        ],
        (Class::Write, Class::Write) => [
            fi::FI_ORDER_WAW,
            fi::FI_ORDER_RMA_WAW,
            fi::FI_ORDER_ATOMIC_WAW,
        ],
        (Class::Read, Class::Send) => [fi::FI_ORDER_RAS, 0, 0],
        (Class::Write, Class::Send) => [fi::FI_ORDER_WAS, 0, 0],
        (Class::Send, Class::Read) => [fi::FI_ORDER_SAR, 0, 0],
        (Class::Send, Class::Write) => [fi::FI_ORDER_SAW, 0, 0],
        (Class::Send, Class::Send) => [fi::FI_ORDER_SAS, 0, 0],
    }
}

/// Returns true if an operation must wait for an earlier one to the same peer. Both are given by
/// their kind and their length in bytes.
pub(crate) fn must_wait(
    profile: &Profile,
    (later, later_nbytes): (OpKind, usize),
    (earlier, earlier_nbytes): (OpKind, usize),
) -> bool {
    if later_nbytes.max(earlier_nbytes) > profile.order_up_to {
        return later == OpKind::Send
            && earlier == OpKind::Send
            && profile.order & fi::FI_ORDER_SAS != 0;
    }
    let pairs = classes(later)
        .iter()
        .flat_map(|&l| classes(earlier).iter().map(move |&e| (l, e)));
    pairs.into_iter().any(|(l, e)| {
        let [any, remote, atomic] = order_flags(l, e);
        let same_kind = match (later == OpKind::Fetch, earlier == OpKind::Fetch) {
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

    fn waits(profile: &str, later: (OpKind, usize), earlier: (OpKind, usize)) -> bool {
        let profile = ALL
            .iter()
            .find(|known| known.text() == profile)
            .expect("a profile");
        must_wait(profile, later, earlier)
    }

    #[test]
    fn profiles_have_the_orders_of_their_providers() {
        let (write, read, send, fetch) = (
            (OpKind::Write, 8),
            (OpKind::Read, 8),
            (OpKind::Send, 8),
            (OpKind::Fetch, 8),
        );
        assert!(
            waits("cxi", write, write) && waits("cxi", send, send) && waits("cxi", fetch, fetch)
        );
        assert!(
            !waits("cxi", read, write) && !waits("cxi", send, write) && !waits("cxi", write, read)
        );
        assert!(!waits("efa", write, write) && !waits("efa", send, send));
        assert!(waits("opx", fetch, fetch) && !waits("opx", write, write));
        assert!(waits("psm3", read, write) && !waits("psm3", send, write));
        assert!(!waits("psm3", (OpKind::Write, 5000), write));
        assert!(waits("mrail", send, write) && !waits("mrail", write, read));
        assert!(waits("copy", send, (OpKind::Write, 5000)));
    }
}
