//! The graph of what waits for what, and which of it can still continue.
//!
//! Its nodes are the PEs, then the steps, then the waits. A PE can continue if one of its waits can
//! end, a wait if all that it waits for can continue, a step if all members that have not come to
//! it can continue. Since the members of a team meet in a step, there are about as many edges as
//! PEs.

use crate::job::{Job, Pe};
use crate::situation::{Situation, is_long};
use crate::status::{Subject, Wait};
use crate::steps::{Step, Steps};
use crate::words;

/// The graph.
pub struct Graph {
    n_pes: usize,
    /// For each node the nodes for which it waits.
    pub forward: Vec<Vec<u32>>,
    /// For each node the nodes that wait for it.
    pub backward: Vec<Vec<u32>>,
    /// PEs with a wait that is for no other PE, or for any.
    pub ends: Vec<(u32, End)>,
    /// Whether each node can continue.
    pub can_continue: Vec<bool>,
    /// The PEs that can continue although nobody writes a word.
    pub unaided: Vec<u32>,
    rules: Vec<Rule>,
    /// The node for which PEs wait at the end of finalize.
    finalize: Option<u32>,
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
    /// If any PE can.
    AnyPe,
}

/// A wait that is for no PE in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// For a word, which any PE may write.
    Word,
    /// For a word, since less than a second.
    YoungWord,
    /// For a word that compares already.
    SatisfiedWord,
    /// For operations over the network on PEs that nothing hinders.
    Network,
    /// For a lock of which the holder is not known.
    Lock,
}

impl Graph {
    pub fn new(job: &Job, steps: &Steps) -> Graph {
        let n_pes = job.pes.len();
        let mut graph = Graph {
            n_pes,
            forward: vec![Vec::new(); n_pes],
            backward: Vec::new(),
            ends: Vec::new(),
            can_continue: Vec::new(),
            unaided: Vec::new(),
            rules: job.pes.iter().map(of_pe).collect(),
            finalize: None,
        };
        for step in &steps.list {
            graph.add(if step.is_mismatched() { Rule::Never } else { Rule::All }, Vec::new());
        }
        graph.connect(steps);
        let are = |situations: &[Situation]| -> Vec<u32> {
            let pes = (0..).zip(&job.pes).filter(|(_, of)| situations.contains(&of.situation));
            pes.map(|(pe, _)| pe).collect()
        };
        // All PEs meet in init.
        let starting = are(&[Situation::Starting]);
        if !starting.is_empty() {
            let missing = are(&[Situation::NoStatus, Situation::Uninitialized]);
            let node = graph.add(Rule::All, missing);
            starting.iter().for_each(|pe| graph.forward[*pe as usize].push(node));
        }
        // All PEs meet at the end of finalize too.
        let has_come = |of: &Pe| {
            let mut waits = of.waits();
            of.situation == Situation::Finalized
                || waits.any(|(wait, _)| wait.subject == Subject::Exit)
        };
        let pes = (0..).zip(&job.pes).filter(|(_, of)| !has_come(of)).map(|(pe, _)| pe);
        let missing: Vec<u32> = pes.collect();
        if !missing.is_empty() && missing.len() < n_pes {
            graph.finalize = Some(graph.add(Rule::All, missing));
        }
        for (pe, of) in (0..).zip(&job.pes) {
            for (wait, values) in of.waits() {
                let (rule, edges) = graph.of_wait(job, steps, pe, of, wait, values);
                let node = graph.add(rule, edges);
                graph.forward[pe as usize].push(node);
            }
        }
        graph.decide();
        graph
    }

    /// The node of a step.
    pub fn step(&self, index: usize) -> u32 {
        (self.n_pes + index) as u32
    }

    /// Whether the node is a PE.
    pub fn is_pe(&self, node: u32) -> bool {
        (node as usize) < self.n_pes
    }

    fn add(&mut self, rule: Rule, edges: Vec<u32>) -> u32 {
        self.rules.push(rule);
        self.forward.push(edges);
        (self.forward.len() - 1) as u32
    }

    /// Connects the steps with the members that have not come to them. A later step lacks what the
    /// step before it lacks, and the PEs of that step.
    fn connect(&mut self, steps: &Steps) {
        let mut is_needed: Vec<bool> = steps.list.iter().map(Step::needs_all).collect();
        for (index, step) in steps.list.iter().enumerate().rev() {
            if let Some(before) = step.before {
                is_needed[before] |= is_needed[index];
            }
        }
        let mut missing_before: Option<u32> = None;
        for (index, step) in steps.list.iter().enumerate() {
            let missing: Vec<u32> = match step.before {
                None => step.elsewhere.clone(),
                Some(before) => {
                    missing_before.into_iter().chain(steps.list[before].pes()).collect()
                }
            };
            let is_needed = is_needed[index] && !missing.is_empty();
            missing_before = is_needed.then(|| self.add(Rule::All, missing));
            let node = self.step(index) as usize;
            self.forward[node] = if step.needs_all() {
                missing_before.into_iter().collect()
            } else {
                step.awaited.clone()
            };
        }
    }

    fn of_wait(
        &mut self,
        job: &Job,
        steps: &Steps,
        pe: u32,
        of: &Pe,
        wait: &Wait,
        values: &[Option<u64>],
    ) -> (Rule, Vec<u32>) {
        let is_long = of.report.is_some_and(|report| is_long(report, wait));
        let known = |pe: &u32| *pe < job.n_pes();
        let (end, edges): (End, Vec<u32>) = match &wait.subject {
            Subject::Words(_) if words::are_satisfied(wait, values) => {
                (End::SatisfiedWord, Vec::new())
            }
            Subject::Words(_) if !is_long => (End::YoungWord, Vec::new()),
            Subject::Words(_) => {
                self.ends.push((pe, End::Word));
                return (Rule::AnyPe, Vec::new());
            }
            Subject::Collective(collective) => {
                let step = steps.of(collective).map(|index| self.step(index));
                return (if_long(is_long), step.into_iter().collect());
            }
            Subject::Lock { lock, behind } => {
                (End::Lock, job.holder(lock).or(*behind).filter(known).into_iter().collect())
            }
            Subject::Operations { peers } => {
                let is_hindered = |pe: &u32| job.pes[*pe as usize].situation.is_hindered();
                let peers = peers.iter().copied().filter(known).filter(is_hindered);
                (End::Network, peers.collect())
            }
            Subject::Message { from } => {
                (End::Network, Some(*from).filter(known).into_iter().collect())
            }
            Subject::Exit => (End::Network, self.finalize.into_iter().collect()),
        };
        if edges.is_empty() {
            self.ends.push((pe, end));
            return (Rule::Always, edges);
        }
        (if_long(is_long), edges)
    }

    /// Finds out which nodes can continue: first without those that any PE may help, then with them
    /// if a PE can.
    fn decide(&mut self) {
        let n_nodes = self.forward.len();
        self.backward = vec![Vec::new(); n_nodes];
        for (node, edges) in (0..).zip(&self.forward) {
            for &edge in edges {
                self.backward[edge as usize].push(node);
            }
        }
        self.can_continue = vec![false; n_nodes];
        let mut missing: Vec<usize> = self.forward.iter().map(Vec::len).collect();
        let starts = |rule: Rule, missing: usize| match rule {
            Rule::Always => true,
            Rule::All => missing == 0,
            Rule::Never | Rule::Any | Rule::AnyPe => false,
        };
        let first = (0..n_nodes).filter(|&node| starts(self.rules[node], missing[node]));
        self.spread(first.collect(), &mut missing);
        let pes = (0..).zip(&self.can_continue[..self.n_pes]);
        self.unaided = pes.filter(|(_, can)| **can).map(|(pe, _)| pe).collect();
        if !self.unaided.is_empty() {
            let any_pe = (0..n_nodes).filter(|&node| self.rules[node] == Rule::AnyPe);
            self.spread(any_pe.collect(), &mut missing);
        }
    }

    /// These nodes can continue, so those that wait for them may.
    fn spread(&mut self, mut nodes: Vec<usize>, missing: &mut [usize]) {
        while let Some(node) = nodes.pop() {
            if std::mem::replace(&mut self.can_continue[node], true) {
                continue;
            }
            for &waiter in &self.backward[node] {
                let waiter = waiter as usize;
                missing[waiter] -= 1;
                let is_next = match self.rules[waiter] {
                    Rule::Any => true,
                    Rule::All => missing[waiter] == 0,
                    Rule::Always | Rule::Never | Rule::AnyPe => false,
                };
                if is_next {
                    nodes.push(waiter);
                }
            }
        }
    }
}

/// A wait of less than a second is no evidence that a PE cannot continue.
fn if_long(is_long: bool) -> Rule {
    if is_long { Rule::All } else { Rule::Always }
}

/// Threads that sleep outside the library are not known, so they are taken for blocked: those of
/// OpenMP would hide most deadlocks.
fn of_pe(of: &Pe) -> Rule {
    match of.situation {
        _ if of.situation.is_gone() => Rule::Never,
        Situation::Waits(_) if !of.is_busy() => Rule::Any,
        _ => Rule::Always,
    }
}
