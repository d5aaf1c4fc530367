//! Providers that lose data by known faults of theirs, and what to use instead. Whatever is only slow or lacks
//! something is no matter of names: [`Facts`](crate::facts::Facts) tell.
#![forbid(unsafe_code)]

/// What is wrong with a provider, by the name that libfabric composes; `None` for one that may be used.
pub(crate) fn of(provider: &str) -> Option<String> {
    // Its reliability is a layer above datagrams. With several PEs writing to one at once a target now and
    // then takes a write for complete of which parts are missing ("Truncation error"): seen with 1.17 here,
    // and by libfabric's own fi_rma_bw with 2.3 (issue 11481 of ofiwg/libfabric).
    let lossy = provider.split(';').any(|layer| layer == "ofi_rxd");
    lossy.then(|| {
        format!(
            "libfabric's provider {provider} is refused, because its layer ofi_rxd loses parts of writes: use \
             one with ofi_rxm, such as tcp;ofi_rxm, or SHMEM_TRANSPORT=tcp"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faulty_layer_is_refused_wherever_it_is() {
        assert!(of("udp;ofi_rxd").is_some_and(|why| why.contains("udp;ofi_rxd is refused")));
        assert!(of("verbs;ofi_rxd").is_some());
        for good in ["tcp;ofi_rxm", "verbs;ofi_rxm", "tcp", "shm", "cxi", "efa", "psm3"] {
            assert_eq!(of(good), None);
        }
    }
}
