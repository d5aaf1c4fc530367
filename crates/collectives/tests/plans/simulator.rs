//! A model of the executor: members that run a program of collectives on one team.
//!
//! A `Put` reads its data when it is issued, and may become visible at once or at any later time.
//! Apart from wrong results the model reports deadlocks, signals for which no member waits, parts
//! written twice, and receive buffers that are overwritten or left unread. With clocks it also
//! reports races that do no harm in the schedule at hand: members only wait for certain messages,
//! so the order of actions that is enforced is the same in every schedule, and one run finds the
//! races of all.

use crate::call::{Call, Expected, Plan};
use crate::clock::{Clock, Event};
use crate::memory::{Access, Area, Memory, ReceiveCopy};
use crate::network::{Data, Network, Signal};
use crate::schedule::{Actor, Schedule};
use crate::value::Value;
use rushmem_collectives::{Buffer, DirectWork, Edge, Operand, Partner, Receivers, Span, Step};
use std::collections::HashMap;

/// A team, its program, and what the executor provides.
pub struct Team<'a> {
    pub n: u32,
    pub program: &'a [Call],
    /// Returns the plan of a call, given by its number in the program, for a member.
    pub plan: &'a dyn Fn(usize, u32) -> Plan,
    /// The number of copies of the receive buffers.
    pub receive_buffer_copies: usize,
    pub clocks: bool,
}

/// Runs a program with unchanged plans. Returns the length of the longest chain of messages.
pub fn run(n: u32, program: &[Call], clocks: bool, seed: u64) -> Result<u32, String> {
    let team = Team {
        n,
        program,
        plan: &|call, me| program[call].plan(n, me),
        receive_buffer_copies: 2,
        clocks,
    };
    team.run(seed)
}

impl Team<'_> {
    /// Runs the program to its end under the schedule of `seed`. Returns the length of the longest
    /// chain of messages.
    pub fn run(&self, seed: u64) -> Result<u32, String> {
        let mut simulation = Simulation::new(self, seed);
        while let Some(actor) = simulation.schedule.take() {
            let can_act_again = match actor {
                Actor::Member(me) => match simulation.act(me) {
                    Ok(can_act_again) => can_act_again,
                    Err(fault) => return Err(simulation.describe(me, &fault)),
                },
                Actor::Channel(index) => simulation.deliver(index)?,
            };
            if can_act_again {
                simulation.schedule.add(actor);
            }
        }
        simulation.finish()
    }
}

struct Simulation<'a> {
    team: &'a Team<'a>,
    schedule: Schedule,
    network: Network,
    members: Vec<Member>,
    memories: Vec<Memory>,
    /// For each member, the events in which it has entered its calls so far.
    entered: Vec<Vec<Event>>,
    /// The counter of each member.
    counters: Vec<Counter>,
    /// For each member, the reads of its source by peers in the current call.
    source_reads: Vec<Vec<Event>>,
    /// Each part of the result of each all-reduce, as the first member that ended the call has it.
    agreed: HashMap<(usize, u32), Value>,
}

struct Counter {
    arrived: u32,
    depth: u32,
    clock: Clock,
    releases: u32,
    /// The contributions since the last release.
    contributions: Vec<Contribution>,
    /// The combined contributions of the last release.
    combined: Option<Value>,
    /// The depth that the released members receive.
    released_depth: u32,
    /// The clock that the released members receive.
    released_clock: Clock,
}

/// The value that a member has stored beside a counter.
struct Contribution {
    member: u32,
    value: Value,
}

struct Member {
    me: u32,
    /// The number of the call in the program that the member is in, or enters next.
    call: usize,
    plan: Option<Plan>,
    /// The step that the member could not carry out yet.
    blocked: Option<Step>,
    /// The parts of the accumulator; more than one if blocks are packed.
    accumulator: Vec<Value>,
    /// The number of releases for which the member has waited.
    awaited: u32,
    /// The number of calls with receive buffers of their own that the member has left.
    epoch: usize,
    depth: u32,
    clock: Clock,
    now: Event,
}

impl Member {
    /// Adds the depth and the clock of a message that the member has received.
    fn receive(&mut self, depth: u32, clock: &Clock) {
        self.depth = self.depth.max(depth);
        self.clock.join(clock);
    }
}

impl Counter {
    fn new(team: &Team<'_>) -> Self {
        let clock = Clock::new(team.n, team.clocks);
        Self {
            arrived: 0,
            depth: 0,
            clock: clock.clone(),
            releases: 0,
            contributions: Vec::new(),
            combined: None,
            released_depth: 0,
            released_clock: clock,
        }
    }
}

impl<'a> Simulation<'a> {
    fn new(team: &'a Team<'a>, seed: u64) -> Self {
        let mut schedule = Schedule::new(seed);
        let mut members = Vec::new();
        let mut memories = Vec::new();
        let mut counters = Vec::new();
        for me in 0..team.n {
            schedule.add(Actor::Member(me));
            members.push(Member {
                me,
                call: 0,
                plan: None,
                blocked: None,
                accumulator: Vec::new(),
                awaited: 0,
                epoch: 0,
                depth: 0,
                clock: Clock::new(team.n, team.clocks),
                now: Event::default(),
            });
            memories.push(Memory::new(team.n, team.program));
            counters.push(Counter::new(team));
        }

        Self {
            team,
            schedule,
            network: Network::new(team.n),
            members,
            memories,
            entered: vec![Vec::new(); team.n as usize],
            counters,
            source_reads: vec![Vec::new(); team.n as usize],
            agreed: HashMap::new(),
        }
    }

    /// Lets a member act. Returns true if it can act again.
    fn act(&mut self, me: u32) -> Result<bool, String> {
        let member = &mut self.members[me as usize];
        member.now = member.clock.tick(me);

        let Some(plan) = &mut member.plan else {
            return Ok(self.enter(me));
        };
        let Some(step) = member.blocked.take().or_else(|| plan.next()) else {
            self.leave(me)?;
            return Ok(true);
        };
        self.execute(me, step)
    }

    /// Lets a channel deliver a message. Returns true if it can act again.
    fn deliver(&mut self, index: usize) -> Result<bool, String> {
        let delivery = self.network.deliver(index);
        let to = delivery.to as usize;
        if let Some(data) = delivery.data {
            self.memories[to].place(data.area, &data.values, data.issued)?;
        }

        if let Some(Step::Wait { peer }) = self.members[to].blocked {
            // The messages on `Edge::Any` are only counted, whoever sent them.
            let ends_wait = match peer.edge {
                Edge::Any => delivery.peer.edge == Edge::Any,
                _ => delivery.peer == peer,
            };
            if ends_wait {
                self.schedule.add(Actor::Member(delivery.to));
            }
        }
        Ok(delivery.more)
    }

    fn enter(&mut self, me: u32) -> bool {
        let member = &mut self.members[me as usize];
        let Some(call) = self.team.program.get(member.call) else {
            return false;
        };

        self.entered[me as usize].push(member.now);
        if call.is_in_place() {
            self.memories[me as usize].fill(member.call, me, member.now);
        }
        member.plan = Some((self.team.plan)(member.call, me));
        member.accumulator = if call.accumulates() {
            vec![Value::source(member.call, me, 0)]
        } else {
            Vec::new()
        };
        true
    }

    /// Carries out a step. Returns false if the member has to wait first.
    fn execute(&mut self, me: u32, step: Step) -> Result<bool, String> {
        match step {
            Step::Put {
                peer,
                from,
                to,
                count,
            } => {
                let values = self.read(me, from, count)?;
                let data = self.write(me, self.peer(me, peer)?.index, to, values)?;
                self.send(me, peer, Some(data));
            }
            Step::PutDirect {
                peer,
                from,
                to,
                count,
            } => {
                let values = self.read(me, from, count)?;
                self.store(me, peer, to, values)?;
            }
            Step::PutToOthers { sent, to } => {
                for peer in (0..self.team.n).filter(|peer| *peer != me) {
                    let values = self.read(me, Buffer::Source.at(sent.of(peer)), 1)?;
                    self.store(me, peer, Buffer::Dest.at(to), values)?;
                }
            }
            Step::Signal { peer } => self.send(me, self.peer(me, peer)?, None),
            Step::Wait { peer } => {
                let Some(signal) = self.network.wait(peer, me) else {
                    self.members[me as usize].blocked = Some(step);
                    return Ok(false);
                };
                self.members[me as usize].receive(signal.depth, &signal.clock);
            }
            Step::Arrive { owner, work } => self.arrive(me, owner, work)?,
            Step::Contribute { owner } => {
                let value = self.read(me, Buffer::Accumulator.at(0), 1)?[0];
                let counter = &mut self.counters[owner as usize];
                counter
                    .contributions
                    .push(Contribution { member: me, value });
                self.arrive(me, owner, None)?;
            }
            Step::TakeCombined { owner } => {
                let counter = &self.counters[owner as usize];
                if counter.releases != self.members[me as usize].awaited {
                    return Err("what was combined is taken before its release, or too late".into());
                }
                let combined = counter.combined.ok_or("nothing was combined")?;
                self.members[me as usize].accumulator = vec![combined];
            }
            Step::AwaitRelease { owner } => {
                let member = &mut self.members[me as usize];
                let counter = &self.counters[owner as usize];
                if counter.releases <= member.awaited {
                    member.blocked = Some(step);
                    return Ok(false);
                }
                member.awaited += 1;
                member.receive(counter.released_depth, &counter.released_clock);
            }
            Step::Direct(work) => self.work_for_all(me, work)?,
            Step::Get {
                peer,
                from,
                to,
                count,
                with,
            } => {
                let mut values = self.read_of(me, peer, from, count)?;
                if let Some(operand) = with {
                    self.combine_with_own(me, &mut values, operand, to.first)?;
                }
                self.store(me, me, to, values)?;
            }
            Step::Copy { from, to, count } => self.copy(me, from, to, count)?,
            Step::Reduce {
                receive_buffer,
                receive_buffer_is_left,
            } => self.reduce(me, receive_buffer, receive_buffer_is_left)?,
        }
        Ok(true)
    }

    /// Copies parts within the memory of `me`.
    fn copy(&mut self, me: u32, from: Span, to: Span, count: u32) -> Result<(), String> {
        let values = self.read(me, from, count)?;
        if to.buffer == Buffer::Accumulator {
            let accumulator = &mut self.members[me as usize].accumulator;
            accumulator.truncate(to.first as usize);
            accumulator.extend(values);
            Ok(())
        } else {
            self.store(me, me, to, values)
        }
    }

    /// Combines the accumulator of `me` with a receive buffer.
    fn reduce(
        &mut self,
        me: u32,
        receive_buffer: u8,
        receive_buffer_is_left: bool,
    ) -> Result<(), String> {
        let received = self.read(me, Buffer::Receive(receive_buffer).at(0), 1)?[0];
        let own = self.read(me, Buffer::Accumulator.at(0), 1)?[0];
        let combined = if receive_buffer_is_left {
            received.combine(own, self.team.n)?
        } else {
            own.combine(received, self.team.n)?
        };
        self.members[me as usize].accumulator = vec![combined];
        Ok(())
    }

    /// Combines values that `me` has read of a peer with its own, which begin at part `first`.
    fn combine_with_own(
        &mut self,
        me: u32,
        values: &mut [Value],
        operand: Operand,
        first: u32,
    ) -> Result<(), String> {
        let own = self.read(me, operand.buffer.at(first), values.len() as u32)?;
        for (value, own) in values.iter_mut().zip(own) {
            *value = if operand.is_left {
                own.combine(*value, self.team.n)?
            } else {
                value.combine(own, self.team.n)?
            };
        }
        Ok(())
    }

    fn arrive(&mut self, me: u32, owner: u32, work: Option<DirectWork>) -> Result<(), String> {
        let member = &mut self.members[me as usize];
        let counter = &mut self.counters[owner as usize];
        counter.arrived += 1;
        counter.depth = counter.depth.max(member.depth + 1);
        counter.clock.join(&member.clock);
        if counter.arrived < self.team.n {
            return Ok(());
        }

        counter.arrived = 0;
        counter
            .contributions
            .sort_unstable_by_key(|contribution| contribution.member);
        counter.combined = None;
        for Contribution { value, .. } in counter.contributions.drain(..) {
            counter.combined = Some(match counter.combined {
                Some(combined) => combined.combine(value, self.team.n)?,
                None => value,
            });
        }

        if let Some(work) = work {
            member.clock.join(&counter.clock);
            self.work_for_all(me, work)?;
        }

        let counter = &mut self.counters[owner as usize];
        counter.clock.join(&self.members[me as usize].clock);
        counter.releases += 1;
        counter.released_depth = counter.depth;
        counter.released_clock = counter.clock.clone();
        for member in &self.members {
            if member.blocked == Some(Step::AwaitRelease { owner }) {
                self.schedule.add(Actor::Member(member.me));
            }
        }
        Ok(())
    }

    /// Does work on the arrays of all members, as member `me`.
    fn work_for_all(&mut self, me: u32, work: DirectWork) -> Result<(), String> {
        match work {
            DirectWork::Reduce { first, count, to } => {
                for part in 0..count {
                    self.reduce_direct(me, first, part, to)?;
                }
            }
            DirectWork::Scan {
                first,
                count,
                exclusive,
            } => {
                for part in first..first + count {
                    self.scan_direct(me, part, exclusive)?;
                }
            }
        }
        Ok(())
    }

    /// Combines a part of the sources of all members, `part` parts behind the `first`, and stores
    /// the result in the destinations of the receivers.
    fn reduce_direct(
        &mut self,
        me: u32,
        first: u32,
        part: u32,
        to: Receivers,
    ) -> Result<(), String> {
        let n = self.team.n;
        let combined = Buffer::Source.at(first + part);
        let mut result = self.read_of(me, 0, combined, 1)?[0];
        for peer in 1..n {
            let value = self.read_of(me, peer, combined, 1)?[0];
            result = result.combine(value, n)?;
        }

        let (members, dest) = match to {
            Receivers::All => (0..n, first + part),
            Receivers::One { member, first } => (member..member + 1, first + part),
            Receivers::Each => (part..part + 1, 0),
        };
        for peer in members {
            self.store(me, peer, Buffer::Dest.at(dest), vec![result])?;
        }
        Ok(())
    }

    /// Combines a part of the sources of the members in order, and stores the result for each
    /// member in its destination.
    fn scan_direct(&mut self, me: u32, part: u32, exclusive: bool) -> Result<(), String> {
        let mut before: Option<Value> = None;
        for peer in 0..self.team.n {
            let own = self.read_of(me, peer, Buffer::Source.at(part), 1)?[0];
            let up_to = match before {
                Some(before) => before.combine(own, self.team.n)?,
                None => own,
            };

            // Member 0 gets nothing of an exclusive scan.
            let result = if exclusive { before } else { Some(up_to) };
            if let Some(result) = result {
                self.store(me, peer, Buffer::Dest.at(part), vec![result])?;
            }
            before = Some(up_to);
        }
        Ok(())
    }

    /// Checks the result of the call for `me`, which then leaves the call.
    fn leave(&mut self, me: u32) -> Result<(), String> {
        let index = self.members[me as usize].call;
        let call = self.team.program[index];
        self.check_dest(me)?;
        self.check_accumulator(me)?;

        let clock = &self.members[me as usize].clock;
        if call.depends_on_all() {
            for (peer, events) in self.entered.iter().enumerate() {
                let knows = events.get(index).is_some_and(|&event| clock.knows(event));
                if !knows {
                    return Err(format!("left before {peer} entered, or may have"));
                }
            }
        }
        for read in self.source_reads[me as usize].drain(..) {
            if !clock.knows(read) {
                return Err("left while a peer reads its source, or may".into());
            }
        }
        self.memories[me as usize].close(index, clock)?;

        let member = &mut self.members[me as usize];
        if call.has_own_receive_buffers() {
            member.epoch += 1;
        }
        member.call += 1;
        member.plan = None;
        Ok(())
    }

    /// Checks the destination of `me`, and that results do not depend on the member.
    fn check_dest(&mut self, me: u32) -> Result<(), String> {
        let n = self.team.n;
        let index = self.members[me as usize].call;
        let call = self.team.program[index];
        for part in 0..call.dest_parts(n) {
            let span = Buffer::Dest.at(part);
            let area = self.area(me, span, 1);
            let holds = if self.memories[me as usize].is_untouched(area)? {
                None
            } else {
                Some(self.read(me, span, 1)?[0])
            };

            let expected = call.expected_dest(index, n, me, part);
            if !expected.is_met_by(holds) {
                return Err(format!("part {part} of Dest: {holds:?}, not {expected:?}"));
            }
            // Rounding makes the order matter, and all members must have the same bits.
            if let (Expected::Combined { .. }, Some(holds)) = (expected, holds)
                && *self.agreed.entry((index, part)).or_insert(holds) != holds
            {
                return Err(format!(
                    "part {part} of Dest: combined in another order than a peer's"
                ));
            }
        }
        Ok(())
    }

    /// Checks the result that `me` has in its accumulator, if the call leaves one there.
    fn check_accumulator(&mut self, me: u32) -> Result<(), String> {
        let index = self.members[me as usize].call;
        let call = self.team.program[index];
        let Some(expected) = call.expected_accumulator(index, self.team.n, me) else {
            return Ok(());
        };

        let result = self.read(me, Buffer::Accumulator.at(0), 1)?[0];
        if !expected.is_met_by(Some(result)) {
            return Err(format!("result: {result:?}, not {expected:?}"));
        }
        if call.is_all_reduce() && *self.agreed.entry((index, 0)).or_insert(result) != result {
            return Err("result: combined in another order than a peer's".into());
        }
        Ok(())
    }

    /// Checks the state after the last action: no member may be in a call, and no signal, release
    /// or receive buffer may be left over. Returns the length of the longest chain of messages.
    fn finish(self) -> Result<u32, String> {
        for member in &self.members {
            if member.plan.is_some() {
                return Err(self.describe(member.me, "deadlock"));
            }
        }
        if let Some(channel) = self.network.undrained() {
            return Err(format!(
                "a signal of {} to {} was not waited for",
                channel.from, channel.to
            ));
        }

        let releases: u32 = self.counters.iter().map(|counter| counter.releases).sum();
        for member in &self.members {
            if member.awaited != releases {
                return Err(format!("{} did not wait for a release", member.me));
            }
        }

        if let Some(receive_buffer) = self.memories.iter().find_map(Memory::unread) {
            return Err(format!("receive buffer {receive_buffer} was not read"));
        }
        let depths = self.members.iter().map(|member| member.depth);
        Ok(depths.max().unwrap_or(0))
    }

    fn read(&mut self, me: u32, span: Span, count: u32) -> Result<Vec<Value>, String> {
        self.read_of(me, me, span, count)
    }

    /// Reads memory of `owner` for `me`.
    fn read_of(
        &mut self,
        me: u32,
        owner: u32,
        span: Span,
        count: u32,
    ) -> Result<Vec<Value>, String> {
        let member = &self.members[me as usize];
        let call = member.call;
        let is_in_place = self.team.program[call].is_in_place();
        let area = match span.buffer {
            Buffer::Source if is_in_place => self.area(me, Buffer::Dest.at(span.first), count),
            _ => self.area(me, span, count),
        };

        match span.buffer {
            Buffer::Source if owner != me => {
                let entered = self.entered[owner as usize].get(call);
                if !entered.is_some_and(|&event| member.clock.knows(event)) {
                    return Err(format!(
                        "{area:?} of {owner} is read before it entered, or may be"
                    ));
                }
                self.source_reads[owner as usize].push(member.now);
            }
            Buffer::Accumulator | Buffer::Receive(_) if owner != me => {
                return Err(format!("{area:?} is not for {me} to read"));
            }
            _ => {}
        }

        let end = span.first + count;
        match span.buffer {
            Buffer::Source if !is_in_place => {
                if end > self.team.program[call].source_parts(self.team.n) {
                    return Err(format!("{area:?} is beyond the source"));
                }
                Ok((span.first..end)
                    .map(|part| Value::source(call, owner, part))
                    .collect())
            }
            Buffer::Accumulator => {
                let parts = span.first as usize..end as usize;
                let values = member.accumulator.get(parts).ok_or("no accumulator")?;
                Ok(values.to_vec())
            }
            Buffer::Source | Buffer::Dest | Buffer::Receive(_) => {
                let access = Access {
                    event: member.now,
                    clock: &member.clock,
                };
                self.memories[owner as usize].read(area, access)
            }
        }
    }

    /// Writes to memory of `owner` for `me`, visible at once.
    fn store(&mut self, me: u32, owner: u32, span: Span, values: Vec<Value>) -> Result<(), String> {
        let data = self.write(me, owner, span, values)?;
        self.memories[owner as usize].place(data.area, &data.values, data.issued)
    }

    /// Issues a write of `me` to memory of `owner`, whose data may become visible from now on.
    fn write(
        &mut self,
        me: u32,
        owner: u32,
        span: Span,
        values: Vec<Value>,
    ) -> Result<Data, String> {
        let area = self.area(me, span, values.len() as u32);
        let member = &self.members[me as usize];
        if let Some(entry) = self.must_have_entered(member.call, span.buffer) {
            let entered = self.entered[owner as usize].get(entry);
            if !entered.is_some_and(|&event| member.clock.knows(event)) {
                return Err(format!(
                    "{area:?} is written before {owner} entered, or may be"
                ));
            }
        }

        let access = Access {
            event: member.now,
            clock: &member.clock,
        };
        self.memories[owner as usize].announce(area, access)?;
        Ok(Data {
            area,
            values,
            issued: member.now,
        })
    }

    /// Returns the call that the owner of a buffer must have entered before a peer writes to the
    /// buffer, as the peer must know; `None` if a peer may write to it at any time.
    fn must_have_entered(&self, call: usize, buffer: Buffer) -> Option<usize> {
        let program = self.team.program;
        match buffer {
            // Further pieces of a vector follow the first one without another entry.
            Buffer::Receive(_) if !program[call].has_own_receive_buffers() => program[..=call]
                .iter()
                .rposition(|call| !call.is_next_piece()),
            Buffer::Dest if program[call] == Call::Words => Some(call),
            _ => None,
        }
    }

    fn send(&mut self, me: u32, peer: Partner, data: Option<Data>) {
        let member = &self.members[me as usize];
        let signal = Signal {
            depth: member.depth + 1,
            clock: member.clock.clone(),
        };
        if let Some(channel) = self.network.send(me, peer, data, signal) {
            self.schedule.add(channel);
        }
    }

    /// Returns the area of parts in the current call of `me`, in its own memory or a peer's.
    fn area(&self, me: u32, span: Span, count: u32) -> Area {
        let member = &self.members[me as usize];
        let program = self.team.program;
        // Calls with receive buffers of their own use the copies in turn, over all such calls. The
        // plans of another call use the copies of the shared receive buffers in turn.
        let is_own = program
            .get(member.call)
            .is_some_and(|call| call.has_own_receive_buffers());
        let turn = if is_own {
            member.epoch
        } else {
            program[..=member.call]
                .iter()
                .rev()
                .take_while(|call| call.is_next_piece())
                .count()
        };

        Area {
            call: member.call,
            copy: ReceiveCopy {
                is_own,
                number: turn % self.team.receive_buffer_copies,
            },
            span,
            count,
        }
    }

    fn peer(&self, me: u32, peer: Partner) -> Result<Partner, String> {
        if peer.index < self.team.n && peer.index != me {
            Ok(peer)
        } else {
            Err(format!("{peer:?} is no peer"))
        }
    }

    fn describe(&self, me: u32, fault: &str) -> String {
        let member = &self.members[me as usize];
        format!(
            "{fault}: index {me} of {} in call {} of {:?}, blocked in {:?}",
            self.team.n, member.call, self.team.program, member.blocked
        )
    }
}
