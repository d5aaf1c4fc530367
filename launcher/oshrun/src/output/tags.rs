//! The prefix of a PE's lines with `--tag-output`: its number, and its host if there are several.

use rushmem_bootstrap::NodeMap;

/// The tags of a job's PEs.
#[derive(Debug, Default)]
pub struct Tags {
    /// The host of each PE, if lines are tagged.
    places: Option<(NodeMap, Vec<String>)>,
}

impl Tags {
    /// No tags.
    pub fn none() -> Tags {
        Tags::default()
    }

    /// Tags of PEs on these nodes, whose hosts have these names.
    pub fn new(nodes: NodeMap, hosts: Vec<String>) -> Tags {
        Tags { places: Some((nodes, hosts)) }
    }

    /// The tag of a PE.
    pub fn of(&self, pe: u32) -> Vec<u8> {
        match &self.places {
            Some((nodes, hosts)) if hosts.len() > 1 && pe < nodes.n_pes() => {
                format!("[{pe}@{}] ", hosts[nodes.node_of(pe) as usize]).into_bytes()
            }
            Some(_) => format!("[{pe}] ").into_bytes(),
            None => Vec::new(),
        }
    }
}
