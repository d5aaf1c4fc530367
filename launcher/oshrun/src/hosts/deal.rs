//! Deals PEs to hosts, in blocks and in order.
//!
//! What a user said about a host's slots is a limit. Where nothing was said, PEs are dealt as evenly as can be, the first
//! hosts getting one more. A host that is named twice is one node, with the slots of both.

use super::host::Host;
use crate::tree::orders::Part;

/// The PEs of each host that gets any. Without `n_pes` there are as many as slots, one on each host that has no number.
/// `is_strict`: slots are what the user said, not what was found.
///
/// # Errors
/// When there are more PEs than slots.
pub fn deal(
    hosts: Vec<Host>,
    n_pes: Option<u32>,
    per_host: Option<u32>,
    is_strict: bool,
) -> Result<Vec<Part>, String> {
    let mut nodes: Vec<Host> = Vec::new();
    for host in hosts {
        match nodes.iter_mut().find(|node| node.name == host.name) {
            Some(node) => {
                let (one, other) = (node.slots.unwrap_or(1), host.slots.unwrap_or(1));
                node.slots = Some(one.saturating_add(other));
            }
            None => nodes.push(host),
        }
    }
    if per_host.is_some() {
        nodes.iter_mut().for_each(|node| node.slots = per_host);
    }
    let is_said = nodes.iter().any(|node| node.slots.is_some());
    let slots: Vec<u32> = nodes.iter().map(|node| node.slots.unwrap_or(1)).collect();
    let total: u64 = slots.iter().map(|slots| u64::from(*slots)).sum();
    let counts = match n_pes {
        None => slots,
        Some(n_pes) if is_said && u64::from(n_pes) <= total => filled(n_pes, &slots),
        Some(n_pes) if is_said && (is_strict || per_host.is_some()) => {
            return Err(format!(
                "{n_pes} PEs are more than the {total} that the hosts shall have; give them more slots, or start fewer PEs"
            ));
        }
        Some(n_pes) => even(n_pes, nodes.len() as u32),
    };
    let mut first = 0_u32;
    let mut parts = Vec::new();
    for (node, count) in nodes.into_iter().zip(counts).filter(|(_, count)| *count > 0) {
        let end = first.checked_add(count).ok_or("a job has fewer than 2^32 PEs")?;
        parts.push(Part { host: node.name, node: first..end, pes: first..end });
        first = end;
    }
    Ok(parts)
}

/// One host full after the other.
fn filled(n_pes: u32, slots: &[u32]) -> Vec<u32> {
    let mut left = n_pes;
    let mut take = |slots: &u32| {
        let count = left.min(*slots);
        left -= count;
        count
    };
    slots.iter().map(&mut take).collect()
}

/// The same for all, and one more for the first.
fn even(n_pes: u32, n_hosts: u32) -> Vec<u32> {
    (0..n_hosts).map(|host| n_pes / n_hosts + u32::from(host < n_pes % n_hosts)).collect()
}

#[cfg(test)]
mod tests;
