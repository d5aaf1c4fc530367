//! The profiles: the requirements and capabilities of each emulated provider.
//!
//! They follow the manual pages fi_cxi, fi_efa, fi_opx, fi_psm3 and fi_mrail of libfabric and the
//! attributes of these providers. Requirements that a test cannot violate are omitted. Queues are
//! shorter, so that they fill up.

use crate::raw_key;
use crate::segment::REGIONS;
use libfabric_sys as fi;
use std::ffi::CStr;
use std::fmt::Display;

/// The way in which RMA operations are performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RmaMode {
    /// By a device, without the target's CPU.
    Hardware,
    /// By the target's CPU, when it reads its completion queue.
    Software,
}

/// The supported atomic operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomics {
    None,
    /// All operations of OpenSHMEM, of 4 and 8 bytes.
    All,
    /// Compare-and-swap and sum, of 8 bytes.
    FewOfEight,
}

/// The properties of a domain, which has the name of the profile.
pub(crate) struct Profile {
    pub(crate) name: &'static CStr,
    /// Operations are neither checked nor delayed.
    pub(crate) immediate: bool,
    pub(crate) rma: RmaMode,
    pub(crate) mr_mode: u64,
    /// The length of keys in bytes: at most 8, unless keys are raw.
    pub(crate) key_bytes: usize,
    /// The required contexts: `FI_CONTEXT`, `FI_CONTEXT2` or none.
    pub(crate) mode: u64,
    /// The order of operations that the domain keeps, as flags `FI_ORDER_*`.
    pub(crate) order: u64,
    /// The maximum length of ordered transfers.
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
    /// A post fails with `FI_EAGAIN` with probability 1/n, never if this is 0 or operations are
    /// immediate.
    pub(crate) eagain_one_in: u32,
    /// The maximum number of registrations of a domain, and of bytes of each.
    pub(crate) max_regions: usize,
    pub(crate) max_region_bytes: usize,
    /// The maximum number of connections of a domain; 0 if endpoints need none.
    pub(crate) max_connections: usize,
    /// The maximum number of connections that may be in setup at once.
    pub(crate) max_begun_connections: usize,
    /// Of each group of this many attempts to connect, the first is refused in the completion
    /// queue, and one in the middle by the result of the post.
    pub(crate) connection_attempts: usize,
    /// Opening the domain aborts the process.
    pub(crate) crashes: bool,
}

/// The profile with the values that the others have unless they state their own.
const COPY: Profile = Profile {
    name: c"copy",
    immediate: true,
    rma: RmaMode::Hardware,
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
    eagain_one_in: 0,
    max_regions: REGIONS,
    max_region_bytes: usize::MAX,
    max_connections: 0,
    max_begun_connections: 0,
    connection_attempts: 1,
    crashes: false,
};

/// Slingshot. Registrations are bound to an endpoint, the provider selects keys, and addresses are
/// offsets. Writes are ordered, and messages among themselves (fi_cxi).
const CXI: Profile = Profile {
    name: c"cxi",
    immediate: false,
    mr_mode: fi::FI_MR_ENDPOINT | fi::FI_MR_ALLOCATED | fi::FI_MR_PROV_KEY,
    order: fi::FI_ORDER_SAS
        | fi::FI_ORDER_WAW
        | fi::FI_ORDER_RMA_WAW
        | fi::FI_ORDER_RMA_RAR
        | fi::FI_ORDER_ATOMIC_WAW
        | fi::FI_ORDER_ATOMIC_RAR,
    inject: 192,
    tx_size: 64,
    rx_size: 128,
    max_message: u32::MAX as usize,
    iov_limit: 1,
    av_type: fi::FI_AV_UNSPEC,
    address_format: fi::FI_ADDR_CXI,
    protocol: fi::FI_PROTO_CXI,
    eagain_one_in: 5,
    ..COPY
};

/// EFA (efa-direct). Local buffers must be registered, too, keys have 4 bytes, and addresses are
/// virtual. No ordering, short messages, no atomic operations.
const EFA: Profile = Profile {
    name: c"efa",
    immediate: false,
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
    atomics: Atomics::None,
    address_format: fi::FI_ADDR_EFA,
    protocol: fi::FI_PROTO_EFA,
    eagain_one_in: 3,
    ..COPY
};

/// Omni-Path Express. The target's CPU performs operations, and only atomic operations are ordered.
/// Address numbers are not indices, injected messages are very short, and completion queues may
/// overrun.
const OPX: Profile = Profile {
    name: c"opx",
    immediate: false,
    rma: RmaMode::Software,
    mode: fi::FI_CONTEXT2,
    order: fi::FI_ORDER_ATOMIC_RAR
        | fi::FI_ORDER_ATOMIC_RAW
        | fi::FI_ORDER_ATOMIC_WAR
        | fi::FI_ORDER_ATOMIC_WAW,
    inject: 16,
    tx_size: 96,
    rx_size: 256,
    max_message: u32::MAX as usize,
    iov_limit: 1,
    resource_mgmt: fi::FI_RM_DISABLED,
    av_type: fi::FI_AV_MAP,
    address_format: fi::FI_ADDR_OPX,
    protocol: fi::FI_PROTO_OPX,
    eagain_one_in: 7,
    ..COPY
};

/// PSM3. The target's CPU performs operations; only those up to 4 KiB are ordered (fi_psm3).
const PSM3: Profile = Profile {
    name: c"psm3",
    immediate: false,
    rma: RmaMode::Software,
    mode: fi::FI_CONTEXT,
    order: fi::FI_ORDER_SAS
        | fi::FI_ORDER_RAR
        | fi::FI_ORDER_RAW
        | fi::FI_ORDER_WAR
        | fi::FI_ORDER_WAW,
    order_up_to: 4096,
    tx_size: 128,
    rx_size: 256,
    max_message: !0xFFFu32 as usize,
    iov_limit: 1,
    av_type: fi::FI_AV_UNSPEC,
    address_format: fi::FI_ADDR_PSMX3,
    protocol: fi::FI_PROTO_PSMX3,
    eagain_one_in: 11,
    ..COPY
};

/// Several rails (ofi_mrail). Raw keys, which peers map before use; no atomic operations.
const MRAIL: Profile = Profile {
    name: c"mrail",
    immediate: false,
    rma: RmaMode::Software,
    mr_mode: fi::FI_MR_RAW,
    key_bytes: raw_key::NBYTES,
    order: fi::FI_ORDER_RAR
        | fi::FI_ORDER_RAW
        | fi::FI_ORDER_RAS
        | fi::FI_ORDER_WAW
        | fi::FI_ORDER_WAS
        | fi::FI_ORDER_SAW
        | fi::FI_ORDER_SAS,
    inject: 48,
    tx_size: 128,
    rx_size: 256,
    max_message: usize::MAX,
    iov_limit: 3,
    atomics: Atomics::None,
    protocol: fi::FI_PROTO_MRAIL,
    eagain_one_in: 5,
    ..COPY
};

/// A NIC like those of InfiniBand, without software: few atomic operations, no inject, no ordering.
const FEW: Profile = Profile {
    name: c"few",
    mode: 0,
    inject: 0,
    atomics: Atomics::FewOfEight,
    address_format: fi::FI_FORMAT_UNSPEC,
    protocol: fi::FI_PROTO_UNSPEC,
    ..EFA
};

/// EFA with few registrations. Local buffers need registrations, too.
const FEW_REGIONS: Profile = Profile {
    name: c"few-regions",
    max_regions: 64,
    ..EFA
};

/// Slingshot with registrations of limited length.
const SMALL_REGIONS: Profile = Profile {
    name: c"small-regions",
    max_region_bytes: 256 << 20,
    ..CXI
};

/// A layer with few connections below it (ofi_rxm).
const FEW_CONNECTIONS: Profile = Profile {
    name: c"few-connections",
    max_connections: 256,
    max_begun_connections: 4,
    connection_attempts: 10,
    address_format: fi::FI_FORMAT_UNSPEC,
    protocol: fi::FI_PROTO_RXM,
    ..PSM3
};

/// A profile where each attempt to connect is refused.
const NO_CONNECTIONS: Profile = Profile {
    name: c"no-connections",
    connection_attempts: 1,
    ..FEW_CONNECTIONS
};

/// A fault of a provider (lnx of libfabric 2.5).
const CRASHES: Profile = Profile {
    name: c"crashes",
    crashes: true,
    ..COPY
};

/// All profiles, in the order in which libfabric offers them.
pub(crate) const ALL: &[Profile] = &[
    FEW_CONNECTIONS,
    COPY,
    CXI,
    EFA,
    OPX,
    PSM3,
    MRAIL,
    FEW,
    FEW_REGIONS,
    SMALL_REGIONS,
    NO_CONNECTIONS,
    CRASHES,
];

impl Profile {
    /// Returns true if this flag of `mr_mode` is set.
    pub(crate) fn requires(&self, mr_mode: u64) -> bool {
        self.mr_mode & mr_mode != 0
    }

    pub(crate) fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or("a profile")
    }

    /// Returns the width in bytes of an atomic operation, if it is supported.
    pub(crate) fn width(&self, datatype: fi::fi_datatype, op: fi::fi_op) -> Option<usize> {
        let width = match datatype {
            fi::FI_INT32 | fi::FI_UINT32 => 4,
            fi::FI_INT64 | fi::FI_UINT64 => 8,
            _ => return None,
        };
        let is_supported = match self.atomics {
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
        if is_supported { Some(width) } else { None }
    }

    /// Returns the maximum length of transfers that have an order, a flag `FI_ORDER_*`.
    pub(crate) fn ordered_up_to(&self, order: u64) -> usize {
        if self.order & order != 0 {
            self.order_up_to
        } else {
            0
        }
    }

    /// Returns the capabilities of endpoints.
    pub(crate) fn caps(&self) -> u64 {
        let atomic = if self.atomics == Atomics::None {
            0
        } else {
            fi::FI_ATOMIC
        };
        let directions = fi::FI_SEND
            | fi::FI_RECV
            | fi::FI_READ
            | fi::FI_WRITE
            | fi::FI_REMOTE_READ
            | fi::FI_REMOTE_WRITE;
        fi::FI_MSG | fi::FI_RMA | atomic | directions | fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM
    }
}

/// Reports the violation of a rule of a profile, and aborts the process.
pub(crate) fn violated(profile: &str, rule: &str, what: impl Display) -> ! {
    eprintln!("strict fabric ({profile}): {rule}: {what}");
    std::process::abort()
}
