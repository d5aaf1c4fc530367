//! Counts the CPUs that the PEs of a node may use together, which decides if a PE may spin.

/// The CPUs that one PE may use.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Cpus {
    /// The number of them that it may use at once, by affinity and cgroup quota.
    pub(super) at_once: usize,
    /// Which ones, by affinity: bit `i % 64` of word `i / 64`.
    pub(super) mask: Vec<u64>,
}

/// Returns the CPUs that this process may use.
pub(super) fn usable() -> Cpus {
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    let mut mask = Vec::new();
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        for cpu in (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)) {
            mask.resize(mask.len().max(cpu / 64 + 1), 0u64);
            mask[cpu / 64] |= 1 << (cpu % 64);
        }
    }
    Cpus { at_once, mask }
}

/// Returns how many CPUs the PEs of a node may use together. A PE that a launcher bound to one CPU
/// does not restrict the others, but a quota below its affinity applies to the whole node.
pub(super) fn of_node<'a>(pes: impl Iterator<Item = &'a Cpus>) -> usize {
    let mut all: Vec<u64> = Vec::new();
    let mut quota = usize::MAX;
    for cpus in pes {
        all.resize(all.len().max(cpus.mask.len()), 0);
        all.iter_mut().zip(&cpus.mask).for_each(|(all, mask)| *all |= mask);
        if cpus.at_once < count(&cpus.mask) || cpus.mask.is_empty() {
            quota = quota.min(cpus.at_once);
        }
    }
    match count(&all) {
        0 => quota,
        bound => bound.min(quota),
    }
}

fn count(mask: &[u64]) -> usize {
    mask.iter().map(|word| word.count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(at_once: usize, mask: u64) -> Cpus {
        Cpus { at_once, mask: vec![mask] }
    }

    #[test]
    fn bound_pes_add_up_and_quotas_do_not() {
        assert_eq!(of_node([cpus(1, 0b01), cpus(1, 0b10)].iter()), 2);
        assert_eq!(of_node([cpus(2, 0b11), cpus(2, 0b11)].iter()), 2);
        assert_eq!(of_node([cpus(3, 0xff), cpus(3, 0xff)].iter()), 3);
        assert_eq!(of_node([Cpus { at_once: 4, mask: vec![] }].iter()), 4);
    }

    #[test]
    fn this_process_may_use_some() {
        assert!(of_node([usable()].iter()) >= 1);
    }
}
