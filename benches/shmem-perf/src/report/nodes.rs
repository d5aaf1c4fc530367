//! The nodes of a job and what they are called: PEs that share memory are one, which may be a part
//! of a host.

use crate::record::JobInfo;

/// Nodes, in the order of their first PEs.
pub struct NodeNames {
    /// The node of each PE.
    pub of: Vec<usize>,
    /// The host's name, or `node 1 of` it where it has several.
    names: Vec<String>,
    /// True if they divide PEs in a way that is worth a line: not where each PE of a host is a node
    /// of its own.
    pub divide: bool,
}

impl NodeNames {
    /// Returns those of the first `n` PEs. Records of older versions have no nodes but hosts.
    pub fn new(job: &JobInfo, n: usize) -> Self {
        let pes = || job.pes.iter().take(n);
        let mut keys: Vec<(u32, u32)> = Vec::new();
        let mut of = Vec::new();
        for pe in pes() {
            let key = (pe.host, pe.node.unwrap_or_default());
            let known = keys.iter().position(|other| *other == key);
            of.push(known.unwrap_or(keys.len()));
            if known.is_none() {
                keys.push(key);
            }
        }
        of.resize(n, 0);
        let nodes_of = |host: u32| keys.iter().filter(move |key| key.0 == host);
        let name = |&(host, node): &(u32, u32)| {
            let name = job.hosts.get(host as usize).map_or("?", |host| &host.name);
            match nodes_of(host)
                .position(|key| key.1 == node)
                .filter(|_| nodes_of(host).count() > 1)
            {
                Some(place) => format!("node {place} of {name}"),
                None => name.to_owned(),
            }
        };
        let has_several_pes = keys.len() < n;
        let are_hosts = keys.iter().all(|key| nodes_of(key.0).count() == 1);
        Self { names: keys.iter().map(name).collect(), divide: has_several_pes || are_hosts, of }
    }

    pub fn name(&self, node: usize) -> &str {
        self.names.get(node).map_or("?", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_host_that_is_one_node_has_its_name() {
        let job = fixture::empty().job;
        let nodes = NodeNames::new(&job, 16);
        assert_eq!(nodes.of[..5], [0, 0, 0, 0, 1]);
        assert!(nodes.divide && nodes.name(1) == fixture::HOSTS[1]);
        assert_eq!((NodeNames::new(&job, 20).of[19], nodes.name(99)), (0, "?"));
    }

    #[test]
    fn a_host_may_be_several_nodes() {
        let mut job = fixture::empty().job;
        job.pes.iter_mut().zip(0..).for_each(|(pe, number)| pe.node = Some(number / 2));
        let nodes = NodeNames::new(&job, 16);
        assert_eq!((nodes.of[1], nodes.of[2], nodes.of[15]), (0, 1, 7));
        assert_eq!(nodes.name(3), format!("node 1 of {}", fixture::HOSTS[1]));
        job.pes.iter_mut().zip(0..).for_each(|(pe, number)| pe.node = Some(number));
        assert!(nodes.divide && !NodeNames::new(&job, 16).divide);
    }
}
