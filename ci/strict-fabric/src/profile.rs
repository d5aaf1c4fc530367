//! What each profile demands and offers: the table that grows.
//!
//! The facts are those of libfabric's manual pages (fi_cxi, fi_efa, fi_opx, fi_psm3, fi_mrail of section 7) and of what the
//! providers of these names tell of themselves; where a provider asks nothing that a test could break, the profile asks
//! for less than it. Queues are shorter than any of theirs, so that they are full.

use crate::raw;
use libfabric_sys as fi;
use std::ffi::CStr;

/// Who moves the data of remote memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// A device: the target's processor has no part in it.
    Device,
    /// The target's processor, whenever it reads its queue.
    Target,
}

/// Which atomic operations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomics {
    None,
    /// Of 4 and 8 bytes, all that OpenSHMEM has.
    All,
    /// Compare-and-swap and sum, of 8 bytes.
    FewOfEight,
}

/// What a domain of the provider is like. It is named like the profile.
pub(crate) struct Profile {
    pub(crate) name: &'static CStr,
    /// Nothing is checked or delayed, and data moves at once.
    pub(crate) at_once: bool,
    pub(crate) carrier: Carrier,
    pub(crate) mr_mode: u64,
    /// At most 8, unless keys are raw.
    pub(crate) key_bytes: usize,
    /// Of contexts: `FI_CONTEXT` or `FI_CONTEXT2`.
    pub(crate) mode: u64,
    /// `FI_ORDER_*`.
    pub(crate) order: u64,
    /// Longer transfers are in no order.
    pub(crate) order_up_to: usize,
    pub(crate) inject: usize,
    pub(crate) tx_size: usize,
    pub(crate) rx_size: usize,
    pub(crate) max_message: usize,
    pub(crate) iov_limit: usize,
    pub(crate) resource_mgmt: fi::fi_resource_mgmt,
    pub(crate) atomics: Atomics,
    pub(crate) av_type: fi::fi_av_type,
    pub(crate) address_format: u32,
    pub(crate) protocol: u32,
    /// One post of about so many is refused by `FI_EAGAIN`.
    pub(crate) refuses_one_of: u32,
}

const COPY: Profile = Profile {
    name: c"copy",
    at_once: true,
    carrier: Carrier::Device,
    mr_mode: 0,
    key_bytes: 8,
    mode: 0,
    order: fi::FI_ORDER_STRICT,
    order_up_to: usize::MAX,
    inject: 256,
    tx_size: 512,
    rx_size: 512,
    max_message: 1 << 30,
    iov_limit: 4,
    resource_mgmt: fi::FI_RM_ENABLED,
    atomics: Atomics::All,
    av_type: fi::FI_AV_TABLE,
    address_format: fi::FI_FORMAT_UNSPEC,
    protocol: fi::FI_PROTO_UNSPEC,
    refuses_one_of: 0,
};

/// Slingshot: registrations belong to an endpoint, and the provider names their keys; addresses are offsets. Writes are in order, of
/// messages only those among themselves (fi_cxi).
const CXI: Profile = Profile {
    name: c"cxi",
    at_once: false,
    carrier: Carrier::Device,
    mr_mode: fi::FI_MR_ENDPOINT | fi::FI_MR_ALLOCATED | fi::FI_MR_PROV_KEY,
    key_bytes: 8,
    mode: 0,
    order: fi::FI_ORDER_SAS
        | fi::FI_ORDER_WAW
        | fi::FI_ORDER_RMA_WAW
        | fi::FI_ORDER_RMA_RAR
        | fi::FI_ORDER_ATOMIC_WAW
        | fi::FI_ORDER_ATOMIC_RAR,
    order_up_to: usize::MAX,
    inject: 192,
    tx_size: 64,
    rx_size: 128,
    max_message: u32::MAX as usize,
    iov_limit: 1,
    resource_mgmt: fi::FI_RM_ENABLED,
    atomics: Atomics::All,
    av_type: fi::FI_AV_UNSPEC,
    address_format: fi::FI_ADDR_CXI,
    protocol: fi::FI_PROTO_CXI,
    refuses_one_of: 5,
};

/// EFA's own interface (efa-direct): local memory is registered, too, keys have 4 bytes, addresses are virtual; nothing is in
/// order, messages are short, and there are no atomic operations.
const EFA: Profile = Profile {
    name: c"efa",
    at_once: false,
    carrier: Carrier::Device,
    mr_mode: fi::FI_MR_LOCAL | fi::FI_MR_VIRT_ADDR | fi::FI_MR_ALLOCATED | fi::FI_MR_PROV_KEY,
    key_bytes: 4,
    mode: fi::FI_CONTEXT2,
    order: fi::FI_ORDER_NONE,
    order_up_to: 0,
    inject: 32,
    tx_size: 32,
    rx_size: 64,
    max_message: 1 << 20,
    iov_limit: 2,
    resource_mgmt: fi::FI_RM_ENABLED,
    atomics: Atomics::None,
    av_type: fi::FI_AV_TABLE,
    address_format: fi::FI_ADDR_EFA,
    protocol: fi::FI_PROTO_EFA,
    refuses_one_of: 3,
};

/// Omni-Path Express: the target's processor does everything, and only atomic operations are in order. Its addresses are no
/// indices, it injects next to nothing, and it says that it manages its resources where it is asked to, but does not.
const OPX: Profile = Profile {
    name: c"opx",
    at_once: false,
    carrier: Carrier::Target,
    mr_mode: 0,
    key_bytes: 8,
    mode: fi::FI_CONTEXT2,
    order: fi::FI_ORDER_ATOMIC_RAR
        | fi::FI_ORDER_ATOMIC_RAW
        | fi::FI_ORDER_ATOMIC_WAR
        | fi::FI_ORDER_ATOMIC_WAW,
    order_up_to: usize::MAX,
    inject: 16,
    tx_size: 96,
    rx_size: 256,
    max_message: u32::MAX as usize,
    iov_limit: 1,
    resource_mgmt: fi::FI_RM_DISABLED,
    atomics: Atomics::All,
    av_type: fi::FI_AV_MAP,
    address_format: fi::FI_ADDR_OPX,
    protocol: fi::FI_PROTO_OPX,
    refuses_one_of: 7,
};

/// PSM3: the target's processor does everything; only what is short is in order (fi_psm3; 4 KiB).
const PSM3: Profile = Profile {
    name: c"psm3",
    at_once: false,
    carrier: Carrier::Target,
    mr_mode: 0,
    key_bytes: 8,
    mode: fi::FI_CONTEXT,
    order: fi::FI_ORDER_SAS
        | fi::FI_ORDER_RAR
        | fi::FI_ORDER_RAW
        | fi::FI_ORDER_WAR
        | fi::FI_ORDER_WAW,
    order_up_to: 4096,
    inject: 256,
    tx_size: 128,
    rx_size: 256,
    max_message: !0xFFFu32 as usize,
    iov_limit: 1,
    resource_mgmt: fi::FI_RM_ENABLED,
    atomics: Atomics::All,
    av_type: fi::FI_AV_UNSPEC,
    address_format: fi::FI_ADDR_PSMX3,
    protocol: fi::FI_PROTO_PSMX3,
    refuses_one_of: 11,
};

/// Several rails as one (ofi_mrail): a key is one for each rail, 16 bytes, and is mapped before it is used; there are no atomic
/// operations.
const MRAIL: Profile = Profile {
    name: c"mrail",
    at_once: false,
    carrier: Carrier::Target,
    mr_mode: fi::FI_MR_RAW,
    key_bytes: raw::NBYTES,
    mode: 0,
    order: fi::FI_ORDER_RAR
        | fi::FI_ORDER_RAW
        | fi::FI_ORDER_RAS
        | fi::FI_ORDER_WAW
        | fi::FI_ORDER_WAS
        | fi::FI_ORDER_SAW
        | fi::FI_ORDER_SAS,
    order_up_to: usize::MAX,
    inject: 48,
    tx_size: 128,
    rx_size: 256,
    max_message: usize::MAX,
    iov_limit: 3,
    resource_mgmt: fi::FI_RM_ENABLED,
    atomics: Atomics::None,
    av_type: fi::FI_AV_TABLE,
    address_format: fi::FI_FORMAT_UNSPEC,
    protocol: fi::FI_PROTO_MRAIL,
    refuses_one_of: 5,
};

/// A NIC like those of InfiniBand, as its device alone is: few atomic operations, nothing injected, nothing in order.
const FEW: Profile = Profile {
    name: c"few",
    mode: 0,
    inject: 0,
    atomics: Atomics::FewOfEight,
    address_format: fi::FI_FORMAT_UNSPEC,
    protocol: fi::FI_PROTO_UNSPEC,
    ..EFA
};

/// All of them; the first is what libfabric offers first.
pub(crate) const ALL: &[Profile] = &[COPY, CXI, EFA, OPX, PSM3, MRAIL, FEW];

impl Profile {
    pub(crate) fn asks(&self, mr_mode: u64) -> bool {
        self.mr_mode & mr_mode != 0
    }

    /// As text.
    pub(crate) fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or("a profile")
    }

    /// The width of the words of an atomic operation that there is.
    pub(crate) fn width(&self, datatype: fi::fi_datatype, op: fi::fi_op) -> Option<usize> {
        let width = match datatype {
            fi::FI_INT32 | fi::FI_UINT32 => 4,
            fi::FI_INT64 | fi::FI_UINT64 => 8,
            _ => return None,
        };
        let has = match self.atomics {
            Atomics::None => false,
            Atomics::FewOfEight => width == 8 && [fi::FI_SUM, fi::FI_CSWAP].contains(&op),
            Atomics::All => [
                fi::FI_SUM,
                fi::FI_BAND,
                fi::FI_BOR,
                fi::FI_BXOR,
                fi::FI_ATOMIC_READ,
                fi::FI_ATOMIC_WRITE,
                fi::FI_CSWAP,
            ]
            .contains(&op),
        };
        has.then_some(width)
    }

    /// What all endpoints can do.
    pub(crate) fn caps(&self) -> u64 {
        let words = if self.atomics == Atomics::None { 0 } else { fi::FI_ATOMIC };
        let directions = fi::FI_SEND
            | fi::FI_RECV
            | fi::FI_READ
            | fi::FI_WRITE
            | fi::FI_REMOTE_READ
            | fi::FI_REMOTE_WRITE;
        fi::FI_MSG | fi::FI_RMA | words | directions | fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM
    }
}
