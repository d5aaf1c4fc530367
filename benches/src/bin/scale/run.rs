//! Runs the plans of all members of a team in the model, and returns their time, messages and
//! bytes.
//!
//! Each member executes its steps in order and has its own clock. The model gives the time at which
//! a message arrives. A member only ever waits for the message of a given peer, so the order in
//! which the members are run here does not change the result.
//!
//! The simulator in the tests of `collectives` runs the same plans for another question. It carries
//! the values of the parts and a vector clock of each member, whose sizes grow with the square of
//! the team, takes the steps in random orders, and fails on a wrong result. This one needs teams of
//! 2^20 members, and for each message only its arrival.
//!
//! One simulator for both would be generic over values, clocks, costs and orders, and would share
//! only the loop that takes the next step of a member. So they are two.

use anyhow::{Result, bail};
use rushmem_collectives::{Edge, Partner, Step};

use crate::machine::Machine;
use crate::operation::{ModeledCollective, Plan};

/// The cost of a collective.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelOutcome {
    /// Microseconds from the common start of all members to the end of the last one.
    pub time: f64,
    /// The maximum number of messages that a member sent.
    pub messages: u64,
    /// The maximum number of bytes that a member put and got.
    pub bytes: u64,
    /// The maximum number of edges on which a member receives messages, each of which needs a flag.
    pub flags: usize,
}

struct ModelMember {
    plan: Plan,
    /// The member's clock.
    time: f64,
    /// The time from which its link can send the next message.
    free: f64,
    messages: u64,
    bytes: u64,
    /// The peer for whose message, which has not been sent yet, the member waits.
    waits_for: Option<Partner>,
    /// The messages for which the member has not waited yet.
    inbox: Vec<Message>,
    /// The flags by which the member has received messages.
    flags: Vec<Flag>,
    done: bool,
}

struct Message {
    sender: Partner,
    arrival: f64,
}

/// A flag of a member.
#[derive(PartialEq, Eq)]
struct Flag {
    edge: Edge,
    /// The sender, for edges that have a flag for each one.
    sender: Option<u32>,
}

/// Runs a collective over a team of the first `n` PEs of a machine.
///
/// # Errors
/// If the plans do not fit together, or need memory that all members share.
pub fn run(operation: &ModeledCollective, machine: &Machine, n: u32) -> Result<ModelOutcome> {
    let mut members = Vec::new();
    for me in 0..n {
        members.push(ModelMember::new(operation.plan(n, me)));
    }
    let mut model = Model {
        operation,
        machine,
        members,
        ready: (0..n).rev().collect(),
    };
    while let Some(me) = model.ready.pop() {
        model.advance(me)?;
    }

    let members = model.members;
    if let Some(stuck) = members.iter().position(|member| !member.done) {
        bail!("{} over {n}: {stuck} waits for ever", operation.algorithm);
    }

    let mut outcome = ModelOutcome::default();
    for member in &members {
        outcome.time = outcome.time.max(member.time);
        outcome.messages = outcome.messages.max(member.messages);
        outcome.bytes = outcome.bytes.max(member.bytes);
        outcome.flags = outcome.flags.max(member.flags.len());
    }
    Ok(outcome)
}

/// A collective while its plans are run.
struct Model<'a> {
    operation: &'a ModeledCollective,
    machine: &'a Machine,
    members: Vec<ModelMember>,
    /// The members that can continue.
    ready: Vec<u32>,
}

impl ModelMember {
    fn new(plan: Plan) -> ModelMember {
        ModelMember {
            plan,
            time: 0.0,
            free: 0.0,
            messages: 0,
            bytes: 0,
            waits_for: None,
            inbox: Vec::new(),
            flags: Vec::new(),
            done: false,
        }
    }

    /// Removes the next message of a peer from the inbox, and returns its arrival time. Returns
    /// `None` if it has not been sent.
    fn take(&mut self, sender: Partner) -> Option<f64> {
        let mut messages = self.inbox.iter();
        let next = messages.position(|message| message.sender == sender)?;
        Some(self.inbox.remove(next).arrival)
    }

    /// Notes the flag by which a message of a peer is received.
    fn note_flag(&mut self, peer: Partner) {
        let flag = Flag {
            edge: peer.edge,
            sender: match peer.edge {
                Edge::Pair | Edge::Line => Some(peer.index),
                Edge::Ahead(_) | Edge::Behind(_) | Edge::Exchange(_) | Edge::Any => None,
            },
        };
        if !self.flags.contains(&flag) {
            self.flags.push(flag);
        }
    }
}

impl Model<'_> {
    /// Executes a member's steps until its plan ends or it waits for a message that has not been
    /// sent.
    fn advance(&mut self, me: u32) -> Result<()> {
        let operation = self.operation;
        let machine = self.machine;
        loop {
            let member = &mut self.members[me as usize];
            let step = match member.waits_for.take() {
                Some(peer) => Some(Step::Wait { peer }),
                None => member.plan.next(),
            };
            let Some(step) = step else {
                member.done = true;
                return Ok(());
            };

            match step {
                Step::Put { peer, count, .. } => self.send(me, peer, operation.nbytes(count)),
                Step::Signal { peer } => self.send(me, peer, 0),
                Step::Wait { peer } => {
                    let Some(arrival) = member.take(peer) else {
                        member.waits_for = Some(peer);
                        return Ok(());
                    };
                    member.time = member.time.max(arrival) + machine.link(peer.index, me).overhead;
                    member.note_flag(peer);
                }
                Step::Get {
                    peer, count, with, ..
                } => {
                    let nbytes = operation.nbytes(count);
                    let link = machine.link(me, peer);
                    // Memory of the same node is loaded; from another node, a request has a reply.
                    let latency = if machine.shares_node(me, peer) {
                        link.latency
                    } else {
                        2.0 * link.latency
                    };
                    member.time += 2.0 * link.overhead + latency + nbytes as f64 * link.per_byte;
                    member.bytes += nbytes as u64;
                    if with.is_some() {
                        member.time += nbytes as f64 * machine.combine_per_byte;
                    }
                }
                Step::Copy { count, .. } => {
                    let nbytes = operation.nbytes(count) as f64;
                    member.time += nbytes * machine.link(me, me).per_byte;
                }
                Step::Reduce { .. } => {
                    let nbytes = operation.collective.nbytes() as f64;
                    member.time += nbytes * machine.combine_per_byte;
                }
                Step::Arrive { .. }
                | Step::Contribute { .. }
                | Step::TakeCombined { .. }
                | Step::AwaitRelease { .. }
                | Step::PutDirect { .. }
                | Step::PutToOthers { .. }
                | Step::Direct(_) => {
                    bail!(
                        "{} needs memory that all members share",
                        operation.algorithm
                    )
                }
            }
        }
    }

    /// Sends a message from `me` to `peer`, which can continue if it waits for the message.
    fn send(&mut self, me: u32, peer: Partner, nbytes: usize) {
        let link = self.machine.link(me, peer.index);
        let transfer = nbytes as f64 * link.per_byte;

        let member = &mut self.members[me as usize];
        member.time = member.time.max(member.free) + link.overhead;
        member.free = member.time + link.gap.max(transfer);
        member.messages += 1;
        member.bytes += nbytes as u64;
        let arrival = member.time + transfer + link.latency;

        // The receiver knows the sender by the same edge.
        let sender = Partner { index: me, ..peer };
        let receiver = &mut self.members[peer.index as usize];
        receiver.inbox.push(Message { sender, arrival });
        if receiver.waits_for == Some(sender) {
            self.ready.push(peer.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::FLAT;
    use crate::operation::{SizedCollective, all};

    fn outcome(collective: SizedCollective, algorithm: &str, n: u32) -> ModelOutcome {
        let operations = all();
        let operation = operations
            .iter()
            .find(|o| o.collective == collective && o.algorithm == algorithm)
            .expect("an operation");
        run(operation, &FLAT, n).expect("plans that fit together")
    }

    #[test]
    fn a_round_costs_a_latency_and_two_overheads() {
        let round = FLAT.link(0, 1).latency + 2.0 * FLAT.link(0, 1).overhead;
        for rounds in 1..=10 {
            let ModelOutcome { time, messages, .. } =
                outcome(SizedCollective::Sync, "dissemination", 1 << rounds);
            assert!(
                (time - f64::from(rounds) * round).abs() < 1e-6,
                "{rounds} rounds: {time}"
            );
            assert_eq!(messages, rounds as u64);
        }
    }

    #[test]
    fn nothing_is_faster_than_the_bound() {
        for operation in all() {
            for n in [2, 3, 64, 100, 256] {
                let bound = operation.collective.lower_bound(&FLAT, n);
                let outcome = run(&operation, &FLAT, n).expect("plans that fit together");
                let time = outcome.time;
                assert!(
                    time >= 0.999 * bound,
                    "{operation:?} over {n}: {time} below {bound}"
                );
            }
        }
    }

    #[test]
    fn the_closed_form_is_what_the_plans_take() {
        for operation in all() {
            for n in [2, 5, 64, 200] {
                let Some(formula) = operation.closed_form(&FLAT, n) else {
                    continue;
                };
                let outcome = run(&operation, &FLAT, n).expect("plans that fit together");
                let time = outcome.time;
                assert!(
                    (time / formula - 1.0).abs() < 0.02,
                    "{operation:?} over {n}: {time}, {formula}"
                );
            }
        }
    }
}
