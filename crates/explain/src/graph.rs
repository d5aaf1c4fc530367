//! The graph of waits, and which of its nodes can still continue.
//!
//! The nodes are the PEs, then the steps of collectives, then other awaited events. A PE can
//! continue if one of its waits can end. A step can be completed if all awaited PEs that have not
//! entered it can continue. PEs wait for a step and not for each member, so there are about as many
//! edges as PEs.

use crate::job::{Job, Pe, Situation};
use crate::status::{Subject, Wait};
use crate::steps::{Step, steps};
use std::collections::HashMap;

/// The graph of waits.
pub struct Graph<'a> {
    pub job: &'a Job<'a>,
    pub steps: Vec<Step<'a>>,
    /// For each node, the nodes for which it waits.
    pub forward: Vec<Vec<u32>>,
    /// For each node, the nodes that wait for it.
    pub backward: Vec<Vec<u32>>,
    /// The PEs with a wait for which no single PE is known to be responsible.
    pub ends: Vec<(u32, End)>,
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
    /// A wait for operations, a message or other PEs at the exit, where no target is known to be
    /// hindered or missing.
    Network,
    /// A wait for a lock whose holder is not known.
    Lock,
}

/// The nodes for which PEs wait, besides other PEs.
struct AwaitedNodes {
    /// The node of each step, by the number of the team and of the collective on it.
    steps: HashMap<(u64, u64), u32>,
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
        let rules = job.pes.iter().map(|of| match of.situation {
            situation if situation.is_gone() => Rule::Never,
            Situation::Waits(_) if !of.is_busy() => Rule::Any,
            _ => Rule::Always,
        });
        let mut graph = Graph {
            job,
            rules: rules.collect(),
            forward: vec![Vec::new(); job.pes.len()],
            backward: Vec::new(),
            ends: Vec::new(),
            can_continue: Vec::new(),
            unaided: Vec::new(),
            steps: Vec::new(),
        };
        let awaited = graph.add_awaited_nodes(&steps);
        graph.steps = steps;
        for (pe, of) in (0..).zip(&job.pes) {
            for (wait, values) in of.waits() {
                graph.add_wait(&awaited, pe, wait, values);
            }
        }
        graph.decide(awaited.writer);
        graph
    }

    /// Returns the node of a step.
    pub fn node_of_step(&self, index: usize) -> u32 {
        self.job.n_pes() + index as u32
    }

    /// Returns true if the node is a PE.
    pub fn is_pe(&self, node: u32) -> bool {
        node < self.job.n_pes()
    }

    fn add(&mut self, rule: Rule, edges: Vec<u32>) -> u32 {
        self.rules.push(rule);
        self.forward.push(edges);
        (self.forward.len() - 1) as u32
    }

    fn add_awaited_nodes(&mut self, steps: &[Step]) -> AwaitedNodes {
        for step in steps {
            let rule = if step.is_mismatched {
                Rule::Never
            } else {
                Rule::All
            };
            self.add(
                rule,
                if step.needs_all() {
                    Vec::new()
                } else {
                    step.awaited.clone()
                },
            );
        }
        // A step that needs all members waits for those that are in no step of the team, and for
        // those in the step before.
        let (mut missing, mut elsewhere) = (&Vec::new(), None);
        for (index, step) in steps.iter().enumerate() {
            if !step.is_later {
                (missing, elsewhere) = (&step.elsewhere, None);
            }
            if step.needs_all() {
                if elsewhere.is_none() && !missing.is_empty() {
                    elsewhere = Some(self.add(Rule::All, missing.clone()));
                }
                let before = if step.is_later {
                    steps[index - 1].pes()
                } else {
                    Vec::new()
                };
                let node = self.node_of_step(index) as usize;
                self.forward[node] = elsewhere.into_iter().chain(before).collect();
            }
        }
        // All PEs meet in init, and at the end of finalize.
        let starting = self.job.all(|of| of.situation == Situation::Starting);
        if !starting.is_empty() {
            use Situation::{NoStatus, Uninitialized};
            let missing = |of: &Pe| matches!(of.situation, NoStatus | Uninitialized);
            let init = self.add(Rule::All, self.job.all(missing));
            starting
                .iter()
                .for_each(|pe| self.forward[*pe as usize].push(init));
        }
        let is_missing = |of: &Pe| {
            let is_finalized = of.situation == Situation::Finalized;
            !is_finalized && !of.waits().any(|(wait, _)| wait.subject == Subject::Exit)
        };
        let missing = self.job.all(is_missing);
        let finalize = (!missing.is_empty() && missing.len() < self.job.pes.len())
            .then(|| self.add(Rule::All, missing));
        let writer = self.add(Rule::Never, Vec::new());
        let of_step = |(index, step): (usize, &Step)| {
            (
                (step.collective.number, step.collective.nth),
                self.node_of_step(index),
            )
        };
        AwaitedNodes {
            steps: steps.iter().enumerate().map(of_step).collect(),
            finalize,
            writer,
        }
    }

    /// Adds the edges of a wait. Nothing is concluded from a wait of less than a second.
    fn add_wait(&mut self, awaited: &AwaitedNodes, pe: u32, wait: &Wait, values: &[Option<u64>]) {
        let job = self.job;
        let is_long = job.pes[pe as usize].is_long(wait);
        let known = |pe: &u32| *pe < job.n_pes();
        let (end, targets): (End, Vec<u32>) = match &wait.subject {
            Subject::Words(words) if words.are_satisfied(values) => (End::SatisfiedWord, vec![]),
            Subject::Words(_) if !is_long => (End::YoungWord, vec![]),
            Subject::Words(_) => (End::Word, vec![awaited.writer]),
            Subject::Collective(of) => (End::Network, vec![awaited.steps[&(of.number, of.nth)]]),
            Subject::Lock { lock, behind } => (
                End::Lock,
                job.holder(lock)
                    .or(*behind)
                    .filter(known)
                    .into_iter()
                    .collect(),
            ),
            Subject::Operations { peers } => {
                let is_hindered = |pe: &u32| job.pes[*pe as usize].situation.is_hindered();
                let peers = peers.iter().copied().filter(known).filter(is_hindered);
                (End::Network, peers.collect())
            }
            Subject::Message { from } => (
                End::Network,
                Some(*from).filter(known).into_iter().collect(),
            ),
            Subject::Exit | Subject::Leaving => {
                (End::Network, awaited.finalize.into_iter().collect())
            }
        };
        if targets.is_empty() || end == End::Word {
            self.ends.push((pe, end));
        }
        if targets.is_empty() || !is_long {
            self.rules[pe as usize] = Rule::Always;
        }
        let target = match targets[..] {
            [_, _, ..] => Some(self.add(Rule::All, targets)),
            _ => targets.first().copied(),
        };
        self.forward[pe as usize].extend(target);
    }

    /// Finds the nodes that can continue: first without writes to awaited words; if a PE can
    /// continue then, it may write any of them, so those waits can end, too.
    fn decide(&mut self, writer: u32) {
        let n_nodes = self.forward.len();
        self.backward = vec![Vec::new(); n_nodes];
        for (node, edges) in (0..).zip(&self.forward) {
            edges
                .iter()
                .for_each(|edge| self.backward[*edge as usize].push(node));
        }
        self.can_continue = vec![false; n_nodes];
        let mut missing: Vec<usize> = self.forward.iter().map(Vec::len).collect();
        let starts = |node: &u32| match self.rules[*node as usize] {
            Rule::Always => true,
            Rule::All => missing[*node as usize] == 0,
            Rule::Never | Rule::Any => false,
        };
        self.spread((0..n_nodes as u32).filter(starts).collect(), &mut missing);
        let pes = 0..self.job.n_pes();
        self.unaided = pes.filter(|pe| self.can_continue[*pe as usize]).collect();
        if !self.unaided.is_empty() {
            self.spread(vec![writer], &mut missing);
        }
    }

    /// Marks these nodes, and all nodes that can continue if these can. `missing` has for each node
    /// the number of its successors that are not marked.
    fn spread(&mut self, mut nodes: Vec<u32>, missing: &mut [usize]) {
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
