//! The quirks of libfabric's providers that libfabric does not report: defects, properties that a
//! job must know, and settings that only environment variables change. All that libfabric reports
//! is in [`FiInfo`](crate::info::FiInfo).

use Quirk::*;
use rushmem_system::devices;
use rushmem_system::setting;
use rushmem_transport::Amos;
use std::ffi::{CStr, CString};

/// A property of a provider that libfabric does not report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quirk {
    /// No job may use the provider; the text says why.
    Defect(&'static str),
    /// The network must not carry out atomic operations over the provider.
    AmoDefect(&'static str),
    /// The provider connects endpoints before they exchange data.
    Connects,
    /// The kernel moves the data, as datagrams or by copying between processes.
    ByKernel,
    /// The provider has the target fetch messages that are longer than its buffers, which takes
    /// longer than a write. In the versions from 1.13 to 1.19 a variable that [`set_variables`]
    /// sets avoids this.
    CutsMessages,
    /// A read's completion shows that the writes before it have arrived, although the provider
    /// promises no such order. Its completions for the target's memory must not be used.
    ReadsFollow,
    /// The provider stops working when the first thread of the process ends.
    NeedsFirstThread,
    /// Closing endpoints may crash, so they are left to the end of the process.
    FailsAtClose,
    /// Endpoints may get the names of those of a killed process ([`unused_name`]).
    ReusesNames,
    /// NICs carry out the atomic operations. The manuals of the providers say so; other providers
    /// leave them to a CPU at one of the two ends (fi_efa, fi_opx, fi_psm3, fi_rxm).
    HardwareAmos,
}

/// The quirks by provider: the name of a layer, or the whole name that libfabric composes of
/// layers.
const QUIRKS: &[(&str, &[Quirk])] = &[
    ("cxi", &[HardwareAmos]),
    ("sockets", &[Connects]),
    ("tcp", &[Connects]),
    ("udp", &[ByKernel]),
    // To copy from and to a process, shm lets the kernel find its memory by its first thread.
    // Completions for the target's memory are reported only when the target polls (1.17), and too
    // early once atomic operations are requested. Without such completions a read follows the
    // writes before it: the kernel carries out writes at once, or both are in the same queue.
    (
        "shm",
        &[ByKernel, ReadsFollow, NeedsFirstThread, ReusesNames],
    ),
    ("ofi_rxm", &[Connects, CutsMessages]),
    // Atomic operations failed (FI_ENOKEY) with 1.17 over a NIC in software, where rxm carries them
    // out. Closing crashed (1.17, seldom, seen in a core file): rxm takes completions of
    // connections that it has freed.
    (
        "verbs;ofi_rxm",
        &[
            AmoDefect("lose keys of atomic operations (libfabric 1.17)"),
            FailsAtClose,
        ],
    ),
    // A layer that makes datagrams reliable. When several PEs write to one at once, the target
    // sometimes completes a write although parts of it are missing ("Truncation error"): seen with
    // 1.17, and with libfabric's own fi_rma_bw with 2.3 (issue 11481 of ofiwg/libfabric).
    (
        "ofi_rxd",
        &[
            Defect("lose parts of writes (libfabric 1.17, 2.3)"),
            ByKernel,
        ],
    ),
    // The provider that became tcp in 1.18, as an experiment beside the tcp of 1.17.
    ("net", &[Defect("stall (libfabric 1.16, 1.17)"), Connects]),
    // Experimental (fi_mrail): with 1.17 over tcp;ofi_rxm, processes crash in it and transfers fail
    // (FI_ETOOSMALL).
    ("ofi_mrail", &[Defect("crash (libfabric 1.17)")]),
    // Links other providers (fi_lnx), and is offered if FI_LNX_PROV_LINKS is set. With 2.5.1 over
    // shm+tcp, opening its domain crashes; over shm alone, no endpoint can be opened. Issues 11392
    // and 12242 of ofiwg/libfabric.
    ("lnx", &[Defect("crash when it is opened (libfabric 2.5)")]),
];

/// Defaults for variables that the user has not set, as `NAME=value`. libfabric reads most of its
/// variables when it is opened and first queried, and some whenever it opens an endpoint.
///
/// - By default rxm allocates buffers for some 5,000 messages of 16 KiB per endpoint, 85 MiB,
///   whatever the hints say. Few and short ones suffice: a message of one operation has fewer than
///   128 bytes here, and puts wait in memory of their own. Over sockets, rxm sends and receives
///   longer messages in one piece and without buffers of its own, up to its eager limit, which it
///   reads for each endpoint and which must be the same on all PEs. By default it checks for
///   connecting peers every 10 ms, which delays the first message on both sides; here it checks
///   every millisecond.
/// - tcp, if a socket is full, keeps the rest of a short message and reports the message as sent.
///   The next poll of the endpoint would send the rest, but nothing requires another poll then. So
///   tcp is configured to keep nothing.
/// - A library that psm uses handles the process's signals, so that a process that crashes would
///   exit with status 1 instead.
const VARIABLES: [&CStr; 5] = [
    c"FI_OFI_RXM_EAGER_LIMIT=65536",
    c"FI_OFI_RXM_MSG_RX_SIZE=512",
    c"FI_OFI_RXM_CM_PROGRESS_INTERVAL=1000",
    c"FI_TCP_STAGING_SBUF_SIZE=0",
    c"IPATH_NO_BACKTRACE=1",
];

/// Further variables on machines with an RDMA device, of hardware or software. Over verbs, rxm
/// cannot open an endpoint (`FI_ENODATA`, 1.17) with buffers of 128 bytes.
const WITH_NIC: [&CStr; 1] = [c"FI_OFI_RXM_BUFFER_SIZE=256"];

/// Further variables on machines without an RDMA device. By default, rxm makes each endpoint's ring
/// of completions long enough for 1024 processes: 12 MiB, of which each operation makes 48 further
/// bytes resident. A short ring suffices over TCP, where rxm continues a full one in a list. Over a
/// NIC it would be too short for the connections, and the provider of Slingshot uses the same
/// variable for other purposes, too.
const WITHOUT_NIC: [&CStr; 2] = [c"FI_OFI_RXM_BUFFER_SIZE=128", c"FI_UNIVERSE_SIZE=4"];

/// Sets the variables that are not set.
pub(crate) fn set_variables() {
    setting::set_defaults(&VARIABLES);
    setting::set_defaults(if devices::any() {
        &WITH_NIC
    } else {
        &WITHOUT_NIC
    });
}

/// Returns the quirks of a provider, by the name that libfabric composes of its layers.
fn quirks(provider: &str) -> impl Iterator<Item = Quirk> {
    QUIRKS
        .iter()
        .filter(move |(name, _)| {
            *name == provider || provider.split(';').any(|layer| layer == *name)
        })
        .flat_map(|(_, quirks)| quirks.iter().copied())
}

pub(crate) fn has(provider: &str, quirk: Quirk) -> bool {
    quirks(provider).any(|one| one == quirk)
}

/// Returns why a provider must not be used, and the remedy; `None` if it may be used.
pub(crate) fn defect(provider: &str, amos: Amos) -> Option<String> {
    for quirk in quirks(provider) {
        if let AmoDefect(defect) = quirk
            && amos == Amos::Network
        {
            return Some(format!(
                "known to {defect}; with SHMEM_AMOS=software the targets' CPUs carry them out"
            ));
        }
    }

    for quirk in quirks(provider) {
        if let Defect(defect) = quirk {
            return Some(format!(
                "known to {defect}; use another, such as tcp;ofi_rxm, or SHMEM_TRANSPORT=tcp"
            ));
        }
    }
    None
}

/// Returns true if a provider sends messages of many kilobytes in one piece, provided that it need
/// not register memory. `version` is that of the provider: 117.0 for libfabric 1.17.
pub(crate) fn sends_whole(provider: &str, version: u32) -> bool {
    !has(provider, CutsMessages) || (113..=119).contains(&(version >> 16))
}

/// Returns an unused name for an endpoint of shm; `None` for other providers. The names that shm
/// chooses itself consist of the process ID and a count. A killed process leaves its files in
/// /dev/shm, so that a later process with the same ID would be refused (`FI_EBUSY`). The unused
/// name begins with the process ID, too, by which `oshrun` finds files to remove.
pub(crate) fn unused_name(provider: &str) -> Option<CString> {
    if !has(provider, ReusesNames) {
        return None;
    }

    let mut random = [0; 4];
    getrandom::fill(&mut random).ok()?;
    let number = u32::from_ne_bytes(random);
    let process = std::process::id();
    let user = rustix::process::getuid().as_raw();
    CString::new(format!("{process}:{user}:{number}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faulty_layers_are_refused_wherever_they_are() {
        for amos in [Amos::Software, Amos::Network] {
            let refusal = defect("udp;ofi_rxd", amos);
            assert!(refusal.is_some_and(|why| why.starts_with("known to lose parts")));
            for bad in [
                "verbs;ofi_rxd",
                "net",
                "net;ofi_rxm",
                "tcp;ofi_rxm;ofi_mrail",
                "lnx",
            ] {
                assert!(defect(bad, amos).is_some(), "{bad}");
            }
            for good in ["tcp;ofi_rxm", "tcp", "shm", "cxi", "efa", "psm3"] {
                assert_eq!(defect(good, amos), None);
            }
        }
    }

    #[test]
    fn rxm_sends_messages_whole_where_its_limit_can_be_set() {
        for (version, whole) in [
            (112, false),
            (113, true),
            (119, true),
            (120, false),
            (204, false),
        ] {
            assert_eq!(
                sends_whole("tcp;ofi_rxm", version << 16),
                whole,
                "{version}"
            );
            assert!(sends_whole("tcp", version << 16));
        }
    }

    #[test]
    fn endpoints_of_shm_alone_get_other_names() {
        let prefix = format!("{}:", std::process::id());
        let names = [(); 2].map(|()| unused_name("shm").expect("a name"));
        assert!(
            names
                .iter()
                .all(|name| name.to_bytes().starts_with(prefix.as_bytes()))
        );
        assert_ne!(names[0], names[1]);
        assert_eq!(unused_name("tcp;ofi_rxm"), None);
    }

    #[test]
    fn a_defect_of_atomic_operations_leaves_the_rest_usable() {
        assert_eq!(defect("verbs;ofi_rxm", Amos::Software), None);
        let refusal = defect("verbs;ofi_rxm", Amos::Network);
        assert!(refusal.is_some_and(|why| why.contains("SHMEM_AMOS=software")));
    }
}
