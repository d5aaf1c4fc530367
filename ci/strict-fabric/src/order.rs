//! The ordering rules of operations to the same peer.

use crate::operation::{OpKind, OrderedOp};
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

/// The flags that order an operation of one class after an operation of another one.
struct OrderFlags {
    /// The flag that orders operations of any kind.
    any: u64,
    /// The flag that orders two RMA operations.
    rma: u64,
    /// The flag that orders two atomic operations.
    atomic: u64,
}

impl OrderFlags {
    /// Messages have a flag for each pair, and no flags by kind.
    fn of_message(any: u64) -> OrderFlags {
        OrderFlags {
            any,
            rma: 0,
            atomic: 0,
        }
    }

    fn of(later: Class, earlier: Class) -> OrderFlags {
        match (later, earlier) {
            (Class::Read, Class::Read) => OrderFlags {
                any: fi::FI_ORDER_RAR,
                rma: fi::FI_ORDER_RMA_RAR,
                atomic: fi::FI_ORDER_ATOMIC_RAR,
            },
            (Class::Read, Class::Write) => OrderFlags {
                any: fi::FI_ORDER_RAW,
                rma: fi::FI_ORDER_RMA_RAW,
                atomic: fi::FI_ORDER_ATOMIC_RAW,
            },
            (Class::Write, Class::Read) => OrderFlags {
                any: fi::FI_ORDER_WAR,
                rma: fi::FI_ORDER_RMA_WAR,
                atomic: fi::FI_ORDER_ATOMIC_WAR,
            },
            (Class::Write, Class::Write) => OrderFlags {
                any: fi::FI_ORDER_WAW,
                rma: fi::FI_ORDER_RMA_WAW,
                atomic: fi::FI_ORDER_ATOMIC_WAW,
            },
            (Class::Read, Class::Send) => OrderFlags::of_message(fi::FI_ORDER_RAS),
            (Class::Write, Class::Send) => OrderFlags::of_message(fi::FI_ORDER_WAS),
            (Class::Send, Class::Read) => OrderFlags::of_message(fi::FI_ORDER_SAR),
            (Class::Send, Class::Write) => OrderFlags::of_message(fi::FI_ORDER_SAW),
            (Class::Send, Class::Send) => OrderFlags::of_message(fi::FI_ORDER_SAS),
        }
    }
}

/// Returns true if an operation must wait for an earlier one to the same peer.
pub(crate) fn must_wait(profile: &Profile, later: OrderedOp, earlier: OrderedOp) -> bool {
    if later.nbytes.max(earlier.nbytes) > profile.order_up_to {
        // The limit is that of RMA and atomic operations; messages are ordered at any length.
        return later.kind == OpKind::Send
            && earlier.kind == OpKind::Send
            && profile.order & fi::FI_ORDER_SAS != 0;
    }

    for &later_class in classes(later.kind) {
        for &earlier_class in classes(earlier.kind) {
            let flags = OrderFlags::of(later_class, earlier_class);
            let by_kind = match (later.kind == OpKind::Fetch, earlier.kind == OpKind::Fetch) {
                (true, true) => flags.atomic,
                (false, false) => flags.rma,
                _ => 0,
            };
            if profile.order & (flags.any | by_kind) != 0 {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ALL;

    const WRITE: OrderedOp = short(OpKind::Write);
    const READ: OrderedOp = short(OpKind::Read);
    const SEND: OrderedOp = short(OpKind::Send);
    const FETCH: OrderedOp = short(OpKind::Fetch);
    const LONG_WRITE: OrderedOp = OrderedOp {
        kind: OpKind::Write,
        nbytes: 5000,
    };

    const fn short(kind: OpKind) -> OrderedOp {
        OrderedOp { kind, nbytes: 8 }
    }

    fn waits(profile: &str, later: OrderedOp, earlier: OrderedOp) -> bool {
        let profile = ALL
            .iter()
            .find(|known| known.text() == profile)
            .expect("a profile");
        must_wait(profile, later, earlier)
    }

    #[test]
    fn profiles_have_the_orders_of_their_providers() {
        assert!(waits("cxi", WRITE, WRITE));
        assert!(waits("cxi", SEND, SEND));
        assert!(waits("cxi", FETCH, FETCH));
        assert!(!waits("cxi", READ, WRITE));
        assert!(!waits("cxi", SEND, WRITE));
        assert!(!waits("cxi", WRITE, READ));

        assert!(!waits("efa", WRITE, WRITE));
        assert!(!waits("efa", SEND, SEND));

        assert!(waits("opx", FETCH, FETCH));
        assert!(!waits("opx", WRITE, WRITE));

        assert!(waits("psm3", READ, WRITE));
        assert!(!waits("psm3", SEND, WRITE));
        assert!(!waits("psm3", LONG_WRITE, WRITE));

        assert!(waits("mrail", SEND, WRITE));
        assert!(!waits("mrail", WRITE, READ));

        assert!(waits("copy", SEND, LONG_WRITE));
    }
}
