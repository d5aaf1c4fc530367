//! Providers that cannot be relied on by known faults of theirs, and what to use instead. Whatever is only slow
//! or lacks something is no matter of names: [`Facts`](crate::facts::Facts) tell.
#![forbid(unsafe_code)]

use crate::atomics::Amos;

/// Layers of providers, and what is wrong with them.
const FAULTY: [(&str, &str); 2] = [
    // Its reliability is a layer above datagrams. With several PEs writing to one at once a target now and
    // then takes a write for complete of which parts are missing ("Truncation error"): seen with 1.17 here,
    // and by libfabric's own fi_rma_bw with 2.3 (issue 11481 of ofiwg/libfabric).
    ("ofi_rxd", "loses parts of writes"),
    // What became the provider tcp of 1.18, as an experiment beside that of 1.17.
    ("net", "stops in the middle of transfers"),
];

/// What is wrong with a provider, by the name that libfabric composes; `None` for one that may be used.
pub(crate) fn of(provider: &str) -> Option<String> {
    let faulty = |&&(layer, _): &&(&str, &str)| provider.split(';').any(|part| part == layer);
    let (layer, fault) = FAULTY.iter().find(faulty)?;
    Some(format!(
        "libfabric's provider {provider} is refused, because its {layer} {fault}: use another, such as \
         tcp;ofi_rxm, or SHMEM_TRANSPORT=tcp"
    ))
}

/// Whether a provider tells of completions before what they are about has happened: shm does (1.17), once it is asked
/// for atomic operations.
pub(crate) fn is_early(provider: &str, amos: Amos) -> bool {
    amos == Amos::Network && provider.split(';').any(|part| part == "shm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faulty_layers_are_refused_wherever_they_are() {
        assert!(of("udp;ofi_rxd").is_some_and(|why| why.contains("udp;ofi_rxd is refused")));
        assert!(of("verbs;ofi_rxd").is_some());
        assert!(of("net").is_some() && of("net;ofi_rxm").is_some());
        for good in ["tcp;ofi_rxm", "verbs;ofi_rxm", "tcp", "shm", "cxi", "efa", "psm3"] {
            assert_eq!(of(good), None);
        }
    }
}
