//! Providers with known faults, by name, and what to use instead. What a provider only lacks or
//! does slowly is not listed here: its [`InfoFacts`](crate::facts::InfoFacts) say so.

use rushmem_transport::Amos;
use std::ffi::CString;

/// Layers of providers, and what they are known to do.
const FAULTY: [(&str, &str); 4] = [
    // Its reliability is a layer above datagrams. With several PEs writing to one at once a target
    // now and then takes a write for complete of which parts are missing ("Truncation error"): seen
    // with 1.17 here, and by libfabric's own fi_rma_bw with 2.3 (issue 11481 of ofiwg/libfabric).
    ("ofi_rxd", "lose parts of writes (libfabric 1.17, 2.3)"),
    // The provider that became tcp in 1.18, as an experiment beside the tcp of 1.17.
    ("net", "stall (libfabric 1.16, 1.17)"),
    // An experiment (fi_mrail): with 1.17, over tcp;ofi_rxm, processes crash in it and transfers
    // fail (FI_ETOOSMALL).
    ("ofi_mrail", "crash (libfabric 1.17)"),
    // It links other providers (fi_lnx), and is offered if FI_LNX_PROV_LINKS is set. With 2.5.1
    // over shm+tcp, opening its domain crashes; over shm alone, no endpoint can be opened. Issues
    // 11392 and 12242 of ofiwg/libfabric.
    ("lnx", "crash when it is opened (libfabric 2.5)"),
];

/// As above, of atomic operations alone: seen with 1.17 over a NIC in software (FI_ENOKEY), where
/// software does them.
const FAULTY_AMOS: [(&str, &str); 1] =
    [("verbs;ofi_rxm", "lose keys of atomic operations (libfabric 1.17)")];

/// Returns what is wrong with a provider, by the name that libfabric composes; `None` for one that
/// may be used.
pub(crate) fn of(provider: &str, amos: Amos) -> Option<String> {
    if amos == Amos::Network
        && let Some((_, fault)) = FAULTY_AMOS.iter().find(|(name, _)| *name == provider)
    {
        return Some(format!(
            "known to {fault}; with SHMEM_AMOS=software the targets' CPUs carry them out"
        ));
    }
    let faulty = |&&(layer, _): &&(&str, &str)| provider.split(';').any(|part| part == layer);
    let (_, fault) = FAULTY.iter().find(faulty)?;
    Some(format!("known to {fault}; use another, such as tcp;ofi_rxm, or SHMEM_TRANSPORT=tcp"))
}

/// Returns true if a provider sends messages of many kilobytes in one piece, where it need not
/// register memory. The layer rxm cuts what is longer than its buffers, and then asks the target to
/// fetch it, which takes longer than a write; of the versions from 1.13 to 1.19 a variable that
/// Rushmem sets says otherwise ([`defaults`](crate::defaults)). Providers write their version as
/// 117.0.
pub(crate) fn sends_whole(provider: &str, version: u32) -> bool {
    !provider.split(';').any(|part| part == "ofi_rxm") || (113..=119).contains(&(version >> 16))
}

/// Returns true if closing a provider's endpoints may crash, so that they are left to the end of
/// the process: those of rxm over verbs (1.17 by a core file, seldom) take completions of
/// connections that they have freed.
pub(crate) fn fails_at_close(provider: &str) -> bool {
    provider == "verbs;ofi_rxm"
}

/// Returns true if a read's completion shows that the writes before it have arrived, although the
/// provider promises no order, and completions that show it are of no use. Those of shm (1.17) come
/// when the target polls, and too early once atomic operations are requested; without them the
/// kernel carries its writes out at once, or reads take the queue of the writes.
pub(crate) fn reads_follow(provider: &str) -> bool {
    provider.split(';').any(|part| part == "shm")
}

/// Returns true if a provider stops working when the process's first thread ends: the kernel finds
/// the memory of a process, which shm copies from and to, by that thread.
pub(crate) fn needs_first_thread(provider: &str) -> bool {
    provider.split(';').any(|part| part == "shm")
}

/// A name for an endpoint that no file in /dev/shm has, `None` where the provider's own are as
/// good. Those of shm are made of the process and a count, and the files of a process that was
/// killed stay: a later one with its number would be refused (`FI_EBUSY`). `oshrun` removes files
/// by the process that the name begins with.
pub(crate) fn unused_name(provider: &str) -> Option<CString> {
    if provider != "shm" {
        return None;
    }
    let mut random = [0; 4];
    getrandom::fill(&mut random).ok()?;
    let number = u32::from_ne_bytes(random);
    let (process, user) = (std::process::id(), rustix::process::getuid().as_raw());
    CString::new(format!("{process}:{user}:{number}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faulty_layers_are_refused_wherever_they_are() {
        for amos in [Amos::Software, Amos::Network] {
            let refusal = of("udp;ofi_rxd", amos);
            assert!(refusal.is_some_and(|why| why.starts_with("known to lose parts")));
            for bad in ["verbs;ofi_rxd", "net", "net;ofi_rxm", "tcp;ofi_rxm;ofi_mrail", "lnx"] {
                assert!(of(bad, amos).is_some(), "{bad}");
            }
            for good in ["tcp;ofi_rxm", "tcp", "shm", "cxi", "efa", "psm3"] {
                assert_eq!(of(good, amos), None);
            }
        }
    }

    #[test]
    fn rxm_sends_messages_whole_where_its_limit_can_be_set() {
        for (version, whole) in [(112, false), (113, true), (119, true), (120, false), (204, false)]
        {
            assert_eq!(sends_whole("tcp;ofi_rxm", version << 16), whole, "{version}");
            assert!(sends_whole("tcp", version << 16));
        }
    }

    #[test]
    fn endpoints_of_shm_alone_get_other_names() {
        let prefix = format!("{}:", std::process::id());
        let names = [(); 2].map(|()| unused_name("shm").expect("a name"));
        assert!(names.iter().all(|name| name.to_bytes().starts_with(prefix.as_bytes())));
        assert_ne!(names[0], names[1]);
        assert_eq!(unused_name("tcp;ofi_rxm"), None);
    }

    #[test]
    fn who_fails_at_atomic_operations_alone_may_do_the_rest() {
        assert_eq!(of("verbs;ofi_rxm", Amos::Software), None);
        let refusal = of("verbs;ofi_rxm", Amos::Network);
        assert!(refusal.is_some_and(|why| why.contains("SHMEM_AMOS=software")));
    }
}
