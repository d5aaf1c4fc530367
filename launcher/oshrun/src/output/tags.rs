//! The prefixes of `--tag-output`: the number of the PE, and its host if there are several.

use rushmem_bootstrap::NodeMap;

/// The tags of a job's PEs.
#[derive(Debug, Default)]
pub struct Tags {
    /// The nodes and their hosts, if lines are tagged.
    hosts: Option<(NodeMap, Vec<String>)>,
}

impl Tags {
    /// Tags for PEs on these nodes with these host names.
    pub fn new(nodes: NodeMap, hosts: Vec<String>) -> Tags {
        Tags { hosts: Some((nodes, hosts)) }
    }

    /// Returns the tag of a PE.
    pub fn of(&self, pe: u32) -> Vec<u8> {
        match &self.hosts {
            Some((nodes, hosts)) if hosts.len() > 1 && pe < nodes.n_pes() => {
                format!("[{pe}@{}] ", hosts[nodes.node_of(pe) as usize]).into_bytes()
            }
            Some(_) => format!("[{pe}] ").into_bytes(),
            None => Vec::new(),
        }
    }
}
