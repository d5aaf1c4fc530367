//! The nodes of the PEs in a heat map, and their names.

use crate::record::JobInfo;

/// The nodes of a job, in the order of their first PEs. PEs that share memory are one node, which
/// may be a part of a host.
pub struct NodeNames {
    /// The index of the node of each PE.
    pub of_pe: Vec<usize>,
    /// The name of each node: that of its host, or `node 1 of` and that name if the host has
    /// several.
    names: Vec<String>,
    /// True if the map has lines between the nodes. False if each PE is a node although a host has
    /// several PEs: every cell would have a border.
    pub divide: bool,
}

impl NodeNames {
    /// Returns the nodes of the first `n` PEs. In records of older versions, which lack nodes, each
    /// host is one.
    pub fn new(job: &JobInfo, n: usize) -> Self {
        /// A part of a host whose PEs share memory.
        #[derive(PartialEq)]
        struct Node {
            host: u32,
            number: u32,
        }

        let mut nodes: Vec<Node> = Vec::new();
        let mut of_pe = Vec::new();
        for pe in job.pes.iter().take(n) {
            let node = Node {
                host: pe.host,
                number: pe.node.unwrap_or_default(),
            };
            let known = nodes.iter().position(|other| *other == node);
            of_pe.push(known.unwrap_or(nodes.len()));
            if known.is_none() {
                nodes.push(node);
            }
        }
        // A record that was written by hand may lack PEs of its matrix.
        of_pe.resize(n, 0);

        let mut names = Vec::new();
        let mut are_hosts = true;
        for (i, node) in nodes.iter().enumerate() {
            let host = job.hosts.get(node.host as usize);
            let host = host.map_or("?", |host| &host.name);
            let of_host = |nodes: &[Node]| nodes.iter().filter(|one| one.host == node.host).count();
            if of_host(&nodes) == 1 {
                names.push(host.to_owned());
            } else {
                names.push(format!("node {} of {host}", of_host(&nodes[..i])));
                are_hosts = false;
            }
        }

        let has_several_pes = nodes.len() < n;
        Self {
            names,
            divide: has_several_pes || are_hosts,
            of_pe,
        }
    }

    /// Returns the name of a node by its index; `?` if there is none.
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
        assert_eq!(nodes.of_pe[..5], [0, 0, 0, 0, 1]);
        assert!(nodes.divide && nodes.name(1) == fixture::HOSTS[1]);
        assert_eq!(NodeNames::new(&job, 20).of_pe[19], 0);
        assert_eq!(nodes.name(99), "?");
    }

    #[test]
    fn a_host_may_be_several_nodes() {
        let mut job = fixture::empty().job;
        for (pe, number) in job.pes.iter_mut().zip(0..) {
            pe.node = Some(number / 2);
        }
        let nodes = NodeNames::new(&job, 16);
        assert_eq!((nodes.of_pe[1], nodes.of_pe[2], nodes.of_pe[15]), (0, 1, 7));
        assert_eq!(nodes.name(3), format!("node 1 of {}", fixture::HOSTS[1]));
        for (pe, number) in job.pes.iter_mut().zip(0..) {
            pe.node = Some(number);
        }
        assert!(nodes.divide && !NodeNames::new(&job, 16).divide);
    }
}
