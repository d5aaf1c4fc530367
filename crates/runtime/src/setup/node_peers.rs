//! The PEs of this node whose static data are not mapped here, and how to reach them.

use super::record::StartupRecord;
use crate::net::cma::{NodePeer, Probe};
use rushmem_bootstrap::{Error, JobSession, NodeMap, Records};
use rushmem_transport::Pe;

/// This PE's node peers, by PE; whether any PE of the job has some; and the path to static data, as
/// text. The PEs of a node agree on the path after each has tried it. The call is collective if
/// there are any.
pub(super) fn find(
    session: &mut JobSession,
    me: Pe,
    nodes: &NodeMap,
    records: &Records<StartupRecord>,
) -> Result<(Vec<Option<NodePeer>>, bool, &'static str), Error> {
    let is_one =
        |&pe: &u32| records[pe].statics_in_slot.is_none() && nodes.size(nodes.node_of(pe)) > 1;
    if !(0..nodes.n_pes()).any(|pe| is_one(&pe)) {
        return Ok((Vec::new(), false, "like the heap"));
    }
    let node = nodes.node_of(me.0);
    let own = |pe: &u32| *pe != me.0 && is_one(pe);
    let works = nodes.members(node).filter(own).all(|pe| {
        let StartupRecord { probe, secret, .. } = &records[pe];
        probe.zip(*secret).is_some_and(|(probe, number)| probe.works(number))
    });
    let answers = session.exchange(&[u8::from(works)])?;
    let by_kernel = nodes.members(node).all(|pe| answers[pe] == [1]);
    let mut node_peers = vec![None; records.n_pes() as usize];
    for pe in nodes.members(node).filter(own) {
        let StartupRecord { probe, statics_start, .. } = &records[pe];
        let peer = probe.zip(*statics_start);
        node_peers[pe as usize] =
            peer.map(|(Probe { pid, .. }, statics)| NodePeer { pid, statics, by_kernel });
    }
    let path = match by_kernel {
        true => "by process_vm_readv and process_vm_writev, words by the transport",
        false => "by the transport, since process_vm_readv or process_vm_writev is refused",
    };
    Ok((node_peers, true, path))
}
