//! The graph of waits, and which of its nodes can still continue.
//!
//! The nodes are the PEs, then the steps of collectives, then other awaited events. A PE can
//! continue if one of its waits can end. A step can be completed if all awaited PEs that have not
//! entered it can continue. PEs wait for a step and not for each member, so there are about as many
//! edges as PEs.

use crate::job::{Job, ObservedState, Pe};
use crate::status::{AwaitedObject, Wait};
use crate::steps::{Step, StepId, steps};
use std::collections::HashMap;

pub struct Graph<'a> {
    pub job: &'a Job<'a>,
    pub steps: Vec<Step<'a>>,
    /// For each node, the nodes for which it waits.
    pub forward: Vec<Vec<u32>>,
    /// For each node, the nodes that wait for it.
    pub backward: Vec<Vec<u32>>,
    /// The waits for which no single PE is known to be responsible.
    open_waits: Vec<OpenWait>,
    /// True for each node that can continue.
    pub can_continue: Vec<bool>,
    /// The PEs that can continue even if no PE writes an awaited word.
    pub unaided: Vec<u32>,
    rules: Vec<Rule>,
}

/// When a node can continue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Always,
    Never,
    /// If one of its successors can.
    Any,
    /// If all of its successors can.
    All,
}

/// The kind of a wait for which no single PE is known to be responsible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A wait on a word, which any PE may write, that began at least a second ago.
    Word,
    /// A wait on a word that began less than a second ago.
    YoungWord,
    /// A wait on a word whose value satisfies the comparison by now.
    SatisfiedWord,
    /// A wait with a limit.
    Limit,
    /// A wait for operations, a message or other PEs at the exit, where no target is known to be
    /// hindered or missing.
    Network,
    /// A wait for a lock whose holder is not known.
    Lock,
}

/// A wait for which no single PE is known to be responsible.
struct OpenWait {
    /// The PE that waits.
    pe: u32,
    end: End,
}

/// The nodes for which PEs wait, besides other PEs.
struct AwaitedNodes {
    /// The node of each step.
    steps: HashMap<StepId, u32>,
    /// The node of the PEs that are missing at the end of finalize; `None` if no PE is missing, or
    /// if all are.
    finalize: Option<u32>,
    /// A node that can continue if any PE can write a word.
    writer: u32,
}

impl<'a> Graph<'a> {
    pub fn new(job: &'a Job<'a>) -> Graph<'a> {
        let steps = steps(job);
        // Sleeping threads outside the library do not count: otherwise idle threads of OpenMP would
        // hide most deadlocks.
        let rules = job.pes.iter().map(|pe| match pe.state {
            state if state.is_gone() => Rule::Never,
            ObservedState::Waits(_) if !pe.is_busy() => Rule::Any,
            _ => Rule::Always,
        });
        let mut graph = Graph {
            job,
            rules: rules.collect(),
            forward: vec![Vec::new(); job.pes.len()],
            backward: Vec::new(),
            open_waits: Vec::new(),
            can_continue: Vec::new(),
            unaided: Vec::new(),
            steps: Vec::new(),
        };

        let awaited = graph.add_awaited_nodes(&steps);
        graph.steps = steps;
        for (pe, observed) in (0..).zip(&job.pes) {
            for (wait, values) in observed.waits() {
                graph.add_wait(&awaited, pe, wait, values);
            }
        }

        graph.decide(awaited.writer);
        graph
    }

    /// Returns the PEs with an open wait of this kind, a PE as often as it has such waits.
    pub fn pes_with(&self, end: End) -> Vec<u32> {
        self.open_waits
            .iter()
            .filter(|wait| wait.end == end)
            .map(|wait| wait.pe)
            .collect()
    }

    /// Returns true if a node waits for this one.
    pub fn is_awaited(&self, node: u32) -> bool {
        !self.backward[node as usize].is_empty()
    }

    /// Returns the node of a step.
    pub fn node_of_step(&self, index: usize) -> u32 {
        self.job.n_pes() + index as u32
    }

    /// Returns true if the node is a PE.
    pub fn is_pe(&self, node: u32) -> bool {
        node < self.job.n_pes()
    }

    /// Adds a node that waits for `edges`, and returns it.
    fn add_node(&mut self, rule: Rule, edges: Vec<u32>) -> u32 {
        self.rules.push(rule);
        self.forward.push(edges);
        (self.forward.len() - 1) as u32
    }

    fn add_awaited_nodes(&mut self, steps: &[Step]) -> AwaitedNodes {
        // The nodes of steps come first, so that their numbers follow from their indices.
        let mut nodes = HashMap::new();
        for step in steps {
            let rule = if step.is_mismatched {
                Rule::Never
            } else {
                Rule::All
            };
            let awaited = if step.needs_all() {
                Vec::new()
            } else {
                step.awaited.clone()
            };
            nodes.insert(StepId::of(step.collective), self.add_node(rule, awaited));
        }
        self.add_missing_members(steps);

        self.add_init();
        let finalize = self.add_finalize();
        // `decide` marks this node by itself.
        let writer = self.add_node(Rule::Never, Vec::new());
        AwaitedNodes {
            steps: nodes,
            finalize,
            writer,
        }
    }

    /// Adds the edges of steps that need all members. Such a step waits for those that are in no
    /// step of the team, and for those in the step before.
    fn add_missing_members(&mut self, steps: &[Step]) {
        // The members of the step's team that are in no step, and their node. All steps of a team
        // share the node: an edge from each step to each PE would be too many.
        let mut missing = &Vec::new();
        let mut missing_node = None;

        for (index, step) in steps.iter().enumerate() {
            if !step.is_later {
                missing = &step.elsewhere;
                missing_node = None;
            }
            if !step.needs_all() {
                continue;
            }

            if missing_node.is_none() && !missing.is_empty() {
                missing_node = Some(self.add_node(Rule::All, missing.clone()));
            }
            let mut edges: Vec<u32> = missing_node.into_iter().collect();
            if step.is_later {
                edges.extend(steps[index - 1].pes());
            }
            let node = self.node_of_step(index);
            self.forward[node as usize] = edges;
        }
    }

    /// Adds the node of init, in which all PEs meet.
    fn add_init(&mut self) {
        let starting = self.job.all(|pe| pe.state == ObservedState::Starting);
        if starting.is_empty() {
            return;
        }

        let missing = self.job.all(|pe| {
            matches!(
                pe.state,
                ObservedState::NoStatus | ObservedState::Uninitialized
            )
        });
        let init = self.add_node(Rule::All, missing);
        for pe in starting {
            self.forward[pe as usize].push(init);
        }
    }

    /// Adds the node of the end of finalize, in which all PEs meet, if some wait there and others
    /// are missing.
    fn add_finalize(&mut self) -> Option<u32> {
        let is_there = |pe: &Pe| {
            let mut waits = pe.waits().map(|(wait, _)| wait);
            waits.any(|wait| wait.subject == AwaitedObject::Exit)
        };
        let missing = self
            .job
            .all(|pe| pe.state != ObservedState::Finalized && !is_there(pe));
        if missing.is_empty() || !self.job.pes.iter().any(is_there) {
            return None;
        }
        Some(self.add_node(Rule::All, missing))
    }

    /// Adds the edges of a wait. Nothing is concluded from a wait of less than a second.
    fn add_wait(&mut self, awaited: &AwaitedNodes, pe: u32, wait: &Wait, values: &[Option<u64>]) {
        let job = self.job;
        let is_long = job.pes[pe as usize].is_long(wait);

        // A status is written by another process, and may name PEs that do not exist.
        let known = |pe: &u32| *pe < job.n_pes();
        let mut targets: Vec<u32> = Vec::new();
        let end = match &wait.subject {
            AwaitedObject::Words(words) if words.are_satisfied(values) => End::SatisfiedWord,
            // It ends by itself, whatever other PEs do.
            _ if wait.limit.is_some() => End::Limit,
            AwaitedObject::Words(_) if !is_long => End::YoungWord,
            AwaitedObject::Words(_) => {
                targets.push(awaited.writer);
                End::Word
            }
            AwaitedObject::Collective(collective) => {
                targets.push(awaited.steps[&StepId::of(collective)]);
                End::Network
            }
            AwaitedObject::Lock { lock, behind } => {
                targets.extend(job.holder(lock).or(*behind).filter(known));
                End::Lock
            }
            AwaitedObject::Operations { peers } => {
                let is_hindered = |pe: &u32| job.pes[*pe as usize].state.is_hindered();
                targets.extend(peers.iter().copied().filter(known).filter(is_hindered));
                End::Network
            }
            AwaitedObject::Message { from } => {
                targets.extend(Some(*from).filter(known));
                End::Network
            }
            AwaitedObject::Exit | AwaitedObject::Leaving => {
                targets.extend(awaited.finalize);
                End::Network
            }
        };

        if targets.is_empty() || end == End::Word {
            self.open_waits.push(OpenWait { pe, end });
        }
        if targets.is_empty() || !is_long {
            self.rules[pe as usize] = Rule::Always;
        }

        // The PE continues if any of its waits ends, but this wait needs all of its targets.
        let target = match targets[..] {
            [] => return,
            [target] => target,
            _ => self.add_node(Rule::All, targets),
        };
        self.forward[pe as usize].push(target);
    }

    /// Finds the nodes that can continue: first without writes to awaited words; if a PE can
    /// continue then, it may write any of them, so those waits can end, too.
    fn decide(&mut self, writer: u32) {
        let n_nodes = self.forward.len();
        self.backward = vec![Vec::new(); n_nodes];
        for (node, edges) in (0..).zip(&self.forward) {
            for edge in edges {
                self.backward[*edge as usize].push(node);
            }
        }

        self.can_continue = vec![false; n_nodes];
        let mut missing: Vec<usize> = self.forward.iter().map(Vec::len).collect();
        let starts = (0..n_nodes as u32).filter(|node| match self.rules[*node as usize] {
            Rule::Always => true,
            Rule::All => missing[*node as usize] == 0,
            Rule::Never | Rule::Any => false,
        });
        self.mark(starts.collect(), &mut missing);

        let pes = 0..self.job.n_pes();
        self.unaided = pes.filter(|pe| self.can_continue[*pe as usize]).collect();
        if !self.unaided.is_empty() {
            self.mark(vec![writer], &mut missing);
        }
    }

    /// Marks these nodes, and all nodes that can continue if these can. `missing` has for each node
    /// the number of its successors that are not marked.
    fn mark(&mut self, mut nodes: Vec<u32>, missing: &mut [usize]) {
        while let Some(node) = nodes.pop() {
            if std::mem::replace(&mut self.can_continue[node as usize], true) {
                continue;
            }
            for &waiter in &self.backward[node as usize] {
                missing[waiter as usize] -= 1;
                match self.rules[waiter as usize] {
                    Rule::Any => nodes.push(waiter),
                    Rule::All if missing[waiter as usize] == 0 => nodes.push(waiter),
                    _ => {}
                }
            }
        }
    }
}
