//! Distributes PEs to hosts, in blocks and in order.
//!
//! Slots that the user specifies are a limit. Without slots, PEs are distributed evenly, and the
//! first hosts get one more.

use super::slots::HostSlots;
use crate::daemons::orders::HostPes;

/// Returns the PEs of each host that gets any. Without `n_pes`, there is one PE per slot; a host
/// without a number has one slot. `is_strict`: the slots come from the user, not from an
/// allocation.
///
/// # Errors
/// If there are more PEs than slots.
pub fn distribute(
    mut nodes: Vec<HostSlots>,
    n_pes: Option<u32>,
    per_host: Option<u32>,
    is_strict: bool,
) -> Result<Vec<HostPes>, String> {
    if per_host.is_some() {
        nodes.iter_mut().for_each(|node| node.slots = per_host);
    }
    let has_slots = nodes.iter().any(|node| node.slots.is_some());
    let slots: Vec<u32> = nodes.iter().map(|node| node.slots.unwrap_or(1)).collect();
    let total: u64 = slots.iter().map(|slots| u64::from(*slots)).sum();
    let counts = match n_pes {
        None => slots,
        Some(n_pes) if has_slots && u64::from(n_pes) <= total => filled(n_pes, &slots),
        Some(n_pes) if has_slots && (is_strict || per_host.is_some()) => {
            return Err(format!(
                "{n_pes} PEs do not fit the {total} slots of the hosts; give the hosts more slots, or start fewer PEs"
            ));
        }
        Some(n_pes) => even(n_pes, nodes.len() as u32),
    };
    let mut first = 0_u32;
    let mut parts = Vec::new();
    for (node, count) in nodes.into_iter().zip(counts).filter(|(_, count)| *count > 0) {
        let end = first.checked_add(count).ok_or("a job has fewer than 2^32 PEs")?;
        parts.push(HostPes { host: node.name, pes: first..end });
        first = end;
    }
    Ok(parts)
}

/// Fills one host after the other.
fn filled(n_pes: u32, slots: &[u32]) -> Vec<u32> {
    let mut left = n_pes;
    let mut take = |slots: &u32| {
        let count = left.min(*slots);
        left -= count;
        count
    };
    slots.iter().map(&mut take).collect()
}

/// Returns the same number for every host, and one more for the first hosts.
fn even(n_pes: u32, n_hosts: u32) -> Vec<u32> {
    (0..n_hosts).map(|host| n_pes / n_hosts + u32::from(host < n_pes % n_hosts)).collect()
}

#[cfg(test)]
mod tests;
