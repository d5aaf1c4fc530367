//! The PEs of this node whose static data are not mapped here, and how to reach them.

use super::record::StartupRecord;
use crate::net::cma::NodePeer;
use rushmem_bootstrap::{Error, JobSession, NodeMap};
use rushmem_transport::Pe;

/// This PE's node peers, by PE; whether any PE of the job has some; and the path to static data, as
/// text. The PEs of a node agree on the path after each has tried it. The call is collective if
/// there are any.
pub(super) fn find(
    session: &mut JobSession,
    me: Pe,
    nodes: &NodeMap,
    records: &[StartupRecord],
) -> Result<(Vec<Option<NodePeer>>, bool, &'static str), Error> {
    let is_one =
        |&pe: &u32| records[pe as usize].statics_at.is_none() && nodes.size(nodes.node_of(pe)) > 1;
    if !(0..nodes.n_pes()).any(|pe| is_one(&pe)) {
        return Ok((Vec::new(), false, "like the heap"));
    }
    let node = nodes.node_of(me.0);
    let own = |pe: &u32| *pe != me.0 && is_one(pe);
    let works = nodes.members(node).filter(own).all(|pe| {
        let record = &records[pe as usize];
        record.probe.works(record.secret)
    });
    let answers = session.exchange(&[u8::from(works)])?;
    let by_kernel = nodes.members(node).all(|pe| answers[pe as usize] == [1]);
    let mut node_peers = vec![None; records.len()];
    for pe in nodes.members(node).filter(own) {
        let record = &records[pe as usize];
        let (pid, statics) = (record.probe.pid, record.statics_start);
        node_peers[pe as usize] = Some(NodePeer { pid, statics, by_kernel });
    }
    let path = match by_kernel {
        true => "by process_vm_readv and process_vm_writev, words by the transport",
        false => "by the transport, since process_vm_readv or process_vm_writev is refused",
    };
    Ok((node_peers, true, path))
}
