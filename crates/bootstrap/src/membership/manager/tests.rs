//! Tests jobs of a process manager in one process: each PE is a thread, and each node has another
//! secret, so that PEs find only those of their own node.

use std::collections::{HashMap, HashSet};
use std::sync::{Barrier, Mutex};
use std::thread;

use super::*;
use crate::node::key;

/// The state of the manager of one job.
struct Store {
    values: Mutex<HashMap<(u32, String), Vec<u8>>>,
    together: Barrier,
    gets: Mutex<usize>,
}

/// The manager as one PE, a thread, sees it.
struct Thread {
    store: Arc<Store>,
    pe: u32,
    n_pes: u32,
    node: u32,
}

impl std::fmt::Debug for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PE {}", self.pe)
    }
}

/// A handle that ends no job.
#[derive(Debug)]
struct NoEnder;

impl Ender for NoEnder {
    fn request_end(&self, _: i32) -> bool {
        true
    }
}

impl ProcessManager for Thread {
    fn pe(&self) -> u32 {
        self.pe
    }

    fn n_pes(&self) -> u32 {
        self.n_pes
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        let mut values = self.store.values.lock().expect("no panic");
        let before = values.insert((self.pe, key.to_owned()), value.to_vec());
        assert!(before.is_none(), "{key} twice");
        Ok(())
    }

    fn fence(&mut self) -> Result<(), Error> {
        self.store.together.wait();
        Ok(())
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Vec<u8>, Error> {
        let values = self.store.values.lock().expect("no panic");
        let value = values.get(&(from, key.to_owned())).cloned();
        let mut value = value.ok_or(Error::Unexpected("nothing"))?;
        if key == key::SECRET {
            // With another secret on each node, PEs of different nodes do not find each other.
            value.extend(self.node.to_le_bytes());
        } else {
            *self.store.gets.lock().expect("no panic") += 1;
        }
        Ok(value)
    }

    fn ender(&self) -> Arc<dyn Ender> {
        Arc::new(NoEnder)
    }
}

/// Runs `body` as each PE; `nodes` is the node of each. Returns the number of the manager's
/// requests for a value.
fn job(nodes: &[u32], body: impl Fn(ManagerMembership) + Sync) -> usize {
    let store = Arc::new(Store {
        values: Mutex::default(),
        together: Barrier::new(nodes.len()),
        gets: Mutex::default(),
    });

    thread::scope(|scope| {
        for (pe, node) in nodes.iter().enumerate() {
            let body = &body;
            let manager = Thread {
                store: store.clone(),
                pe: pe as u32,
                n_pes: nodes.len() as u32,
                node: *node,
            };
            scope.spawn(move || {
                body(ManagerMembership::join(Box::new(manager), None).expect("joined"))
            });
        }
    });
    *store.gets.lock().expect("no panic")
}

#[test]
fn nodes_exchange_once_each() {
    for nodes in [
        &[0_u32][..],
        &[0, 0, 0],
        &[0, 1],
        &[0, 0, 1, 1],
        &[0, 1, 0, 2, 1, 0, 2],
        &[0, 1, 2, 3],
    ] {
        let gets = job(nodes, |mut membership| {
            assert_eq!(
                *membership.nodes(),
                NodeMap::from_marks(nodes).expect("not empty")
            );

            let me = membership.pe();
            for round in 0..4_u8 {
                let record = |pe: u32| vec![round; 300 * pe as usize];
                let to = if round < 3 {
                    Receivers::All
                } else {
                    Receivers::FirstOfNode
                };
                let records = membership.exchange(to, &record(me)).expect("records");
                let receives = to == Receivers::All || membership.nodes().local_index(me) == 0;
                let expected = (0..nodes.len() as u32).map(record).collect();
                assert_eq!(records, receives.then_some(expected));

                membership.barrier().expect("all came");
            }
        });

        // The first PE of each node gets the list of each node, and in each exchange the records of
        // each other node.
        let n = nodes.iter().collect::<HashSet<_>>().len();
        let expected = if n == 1 { 0 } else { n * n + 4 * n * (n - 1) };
        assert_eq!(gets, expected, "{nodes:?}");
    }
}

#[test]
fn a_node_shares_memory_unless_a_pe_is_alone() {
    job(&[0, 1, 0], |mut membership| {
        let alone = membership.pe() == 1;
        assert_eq!(membership.take_memory().is_none(), alone);
    });
}
