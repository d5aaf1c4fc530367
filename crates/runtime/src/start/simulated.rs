//! Simulated starts: members of a job take the steps of a start in one thread, by the functions
//! with which PEs take them, and exchange their records through a simulated launcher. A seed draws
//! the job, and the members that fail, end, or send what they must not.
//!
//! However a start goes, no member becomes ready unless all do; all that are ready have computed
//! the same, and what the world says; a member that has heard of a disagreement reports it and
//! names a PE that differs; and no member waits for an exchange in which another one takes no part.
//! Members are late in a random order, which must not matter.

mod member;
mod world;

use super::connect::negotiation::Findings;
use super::error::StartError;
use super::record::StartupRecord;
use fastrand::Rng;
use member::{Decisions, Member, Message, Round};
use rushmem_bootstrap::Records;
use rushmem_system::codec::decode;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use world::{Trouble, World};

/// The number of seeds.
const SEEDS: u64 = 1000;
/// The number of seeds if `cargo xtask test --full` asks for more.
const MORE_SEEDS: u64 = 10_000;
/// Maximum number of exchanges of a start, far more than one has.
const MOST_ROUNDS: usize = 100;
/// The bytes of a build before a record.
const BUILD_BYTES: usize = 8;

/// Runs the starts of all seeds, or that of RUSHMEM_SEED.
#[test]
fn starts_of_all_seeds() {
    let one = std::env::var("RUSHMEM_SEED").ok();
    let seeds = match one.map(|seed| seed.parse::<u64>()) {
        Some(seed) => {
            let seed = seed.expect("RUSHMEM_SEED is a number");
            seed..seed + 1
        }
        None if testkit::every_size() => 0..MORE_SEEDS,
        None => 0..SEEDS,
    };

    let mut outcomes = Outcomes::default();
    for seed in seeds.clone() {
        let run = || start(&mut Rng::with_seed(seed));
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(outcome) => outcomes.count(outcome),
            Err(failure) => {
                eprintln!(
                    "repeat this with RUSHMEM_SEED={seed} cargo test -p rushmem-runtime starts_of_all_seeds"
                );
                resume_unwind(failure)
            }
        }
    }

    // Each way in which a start may go is frequent, so that the checks above say something.
    if seeds.end - seeds.start > 1 {
        let least = (seeds.end - seeds.start) as usize / 50;
        assert!(outcomes.are_at_least(least), "{outcomes:?}");
    }
}

/// How a start has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Ready { by_network: bool },
    Disagreement,
    Damaged,
    NoTransport,
    Ended,
}

/// The numbers of starts.
#[derive(Debug, Default)]
struct Outcomes {
    on_node: usize,
    by_network: usize,
    disagreements: usize,
    damaged: usize,
    without_transport: usize,
    ended: usize,
}

impl Outcomes {
    fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Ready { by_network: false } => &mut self.on_node,
            Outcome::Ready { by_network: true } => &mut self.by_network,
            Outcome::Disagreement => &mut self.disagreements,
            Outcome::Damaged => &mut self.damaged,
            Outcome::NoTransport => &mut self.without_transport,
            Outcome::Ended => &mut self.ended,
        } += 1;
    }

    fn are_at_least(&self, least: usize) -> bool {
        [
            self.on_node,
            self.by_network,
            self.disagreements,
            self.damaged,
            self.without_transport,
            self.ended,
        ]
        .iter()
        .all(|&n| n >= least)
    }
}

/// Runs the start of a world.
fn start(rng: &mut Rng) -> Outcome {
    let world = World::draw(rng);
    let mut run = Run {
        world: &world,
        heard: Vec::new(),
    };

    let mut members: Vec<Option<Member<'_>>> = Vec::new();
    let mut moves: Vec<Move> = Vec::new();
    for pe in 0..world.n_pes() {
        let (member, next) = match Member::identify(&world, pe) {
            Ok((member, message)) => (Some(member), Ok(message)),
            Err(error) => (None, Err(error)),
        };
        members.push(member);
        moves.push(next);
    }

    for nth in 0..MOST_ROUNDS {
        if let Some(outcome) = run.check_ended(nth, &moves) {
            return outcome;
        }

        let round = run.common_round(&moves);
        if round == Round::Meet {
            let members = members.into_iter().flatten();
            return run.check_ready(&members.map(Member::decisions).collect::<Vec<_>>());
        }

        let sent: Vec<Vec<u8>> = (0..)
            .zip(&moves)
            .map(|(pe, next)| run.tampered(rng, pe, nth, message(next)))
            .collect();
        let records: Records = sent.iter().cloned().collect();
        run.heard.push((round, sent));

        // Members are late: they go on in a random order.
        let mut order: Vec<usize> = (0..members.len()).collect();
        rng.shuffle(&mut order);
        for pe in order {
            let member = members[pe].as_mut().expect("all have sent");
            moves[pe] = member.hears(records.clone());
        }
    }
    panic!("the start does not end");
}

/// What a member does next: it sends a message, or refuses to start.
type Move = Result<Message, StartError>;

fn message(next: &Move) -> &Message {
    next.as_ref().expect("none has refused")
}

/// The run of a start.
struct Run<'w> {
    world: &'w World,
    /// The exchanges so far, with what each member has sent.
    heard: Vec<(Round, Vec<Vec<u8>>)>,
}

impl Run<'_> {
    /// Returns the exchange in which all members are.
    fn common_round(&self, moves: &[Move]) -> Round {
        let first = &message(&moves[0]).round;
        for (pe, next) in moves.iter().enumerate() {
            let own = &message(next).round;
            assert_eq!(own, first, "PE {pe} and PE 0 wait for each other");
        }
        first.clone()
    }

    /// Returns what arrives of a message.
    fn tampered(&self, rng: &mut Rng, pe: u32, nth: usize, message: &Message) -> Vec<u8> {
        let mut bytes = message.bytes.clone();
        // The build is right, so that what follows it is read.
        let start = if message.round == Round::Record {
            BUILD_BYTES
        } else {
            0
        };
        match self.world.pes[pe as usize].trouble {
            Some(Trouble::Garbage { nth: n }) if n == nth => {
                bytes.truncate(start);
                let n_bytes = rng.usize(..200);
                bytes.extend((0..n_bytes).map(|_| rng.u8(..)));
            }
            Some(Trouble::Cut { nth: n }) if n == nth => {
                bytes.truncate(rng.usize(..=bytes.len().saturating_sub(1)));
            }
            Some(Trouble::Longer { nth: n }) if n == nth => bytes.push(rng.u8(..)),
            _ => {}
        }
        bytes
    }

    /// Checks the members that have ended or refused, if any have: then the launcher ends the job,
    /// and the others do not become ready.
    fn check_ended(&self, nth: usize, moves: &[Move]) -> Option<Outcome> {
        let mut outcome = None;
        for (next, me) in moves.iter().zip(0..) {
            if let Err(error) = next {
                outcome = Some(self.check_refusal(me, error));
            }
        }
        if let Some(outcome) = outcome {
            if outcome == Outcome::Disagreement || outcome == Outcome::Damaged {
                let has_refused = moves.iter().all(Result::is_err);
                assert!(has_refused, "a PE goes on although another one has refused");
            }
            return Some(outcome);
        }

        // The records are compared after the exchange about pages, if there is one.
        if message(&moves[0]).round != Round::Pages {
            self.check_nothing_is_hidden();
        }
        let ends = |pe: &world::PeFacts| pe.trouble == Some(Trouble::Ends { nth });
        self.world.pes.iter().any(ends).then_some(Outcome::Ended)
    }

    /// Checks that a PE is right to refuse, and names a PE that differs.
    fn check_refusal(&self, me: u32, error: &StartError) -> Outcome {
        use StartError as E;
        match error {
            E::VirtualNodes { n_pes } => {
                assert_eq!(*n_pes, self.world.n_pes());
                Outcome::Ended
            }
            E::SeveralMachines => {
                assert!(self.world.machines.n_nodes() > 1);
                Outcome::Ended
            }
            E::Memory { .. } => {
                self.check_nothing_is_hidden();
                Outcome::Ended
            }
            E::Builds { pe, .. } => {
                let build = |pe: u32| self.bytes_of(pe).get(..BUILD_BYTES);
                assert_ne!(build(*pe), build(0), "PE 0 and PE {pe} have one build");
                assert!((0..*pe).all(|before| build(before) == build(0)));
                Outcome::Disagreement
            }
            E::SecretMissing => {
                assert_eq!(self.records()[0].secret, None);
                Outcome::Damaged
            }
            E::Setting { pe, .. }
            | E::Forced { pe, .. }
            | E::Tuned { pe, .. }
            | E::Program { pe, .. } => {
                self.check_difference(me, *pe, error);
                Outcome::Disagreement
            }
            E::Requested { pe, .. } => {
                let findings = self.findings();
                let differs =
                    |pe: u32| requested(&findings[pe as usize]) != requested(&findings[0]);
                assert!(differs(*pe) && !(0..*pe).any(differs), "{error}");
                Outcome::Disagreement
            }
            E::Providers { pe } => {
                let findings = self.findings();
                let n_here = self.world.providers(me).len();
                let differs = |pe: u32| findings[pe as usize].seen.len() != n_here;
                assert!(differs(*pe) && !(0..*pe).any(differs), "{error}");
                Outcome::Disagreement
            }
            E::Data { pe, .. } => {
                assert!(self.is_damaged(*pe) && !(0..*pe).any(|pe| self.is_damaged(pe)));
                Outcome::Damaged
            }
            E::NoTransport(why) => {
                let wanted = self.world.expected_transport(&self.findings());
                assert!(
                    wanted.is_none() || self.is_tampered(),
                    "{wanted:?} works, but: {why}"
                );
                let requested = &self.findings()[0].requested;
                let names_it = why.starts_with(&format!("SHMEM_TRANSPORT is {requested}"));
                assert!(
                    requested.is_empty() || names_it || self.is_tampered(),
                    "{why}"
                );
                for pe in pes_in(why) {
                    assert!(self.world.lacks_something(pe), "PE {pe}: {why}");
                }
                Outcome::NoTransport
            }
            _ => panic!("PE {me} refuses: {error}"),
        }
    }

    /// Checks that the records of two PEs differ in what an error says, and that no PE before the
    /// one that it names does.
    fn check_difference(&self, me: u32, pe: u32, error: &StartError) {
        let records = self.records();
        let differs = |pe: u32| {
            let (one, other) = (&records[me as usize], &records[pe as usize]);
            match error {
                StartError::Forced { .. } => one.forced != other.forced,
                StartError::Tuned { .. } => one.tuned != other.tuned,
                StartError::Program { .. } => one.statics != other.statics,
                _ => !differing_settings(one, other).is_empty(),
            }
        };
        assert!(differs(pe), "PE {me} is like PE {pe}, but: {error}");
        assert!(!(0..pe).any(differs), "PE {pe} is not the first: {error}");

        if let StartError::Setting {
            name, here, there, ..
        } = error
        {
            let differing = differing_settings(&records[me as usize], &records[pe as usize]);
            assert_eq!(differing[0], *name);
            assert_ne!(here, there);
        }
    }

    /// Checks that what all have heard so far has no damage and no disagreement, since the members
    /// go on.
    fn check_nothing_is_hidden(&self) {
        let Some((round, _)) = self.heard.last() else {
            return;
        };
        if matches!(round, Round::Record | Round::Pages) {
            let sent = self.heard_in(&Round::Record).expect("it is the first");
            let first = &sent[0][..BUILD_BYTES];
            assert!(sent.iter().all(|bytes| bytes.starts_with(first)), "builds");

            let records = self.records();
            for (pe, record) in records.iter().enumerate() {
                let differing = differing_settings(record, &records[0]);
                assert!(differing.is_empty(), "PE {pe} has other {differing:?}");
                let is_like =
                    |value: fn(&StartupRecord) -> u64| value(record) == value(&records[0]);
                assert!(
                    is_like(|one| one.forced) && is_like(|one| one.tuned),
                    "PE {pe}"
                );
                assert!(is_like(|one| one.statics), "PE {pe} runs another program");
            }
        }
        if *round == Round::Findings {
            for (found, pe) in self.findings().iter().zip(0..) {
                let first = &self.findings()[0];
                assert_eq!(requested(found), requested(first), "PE {pe}");
                let n_seen = if first.requested.is_empty() {
                    3
                } else {
                    found.seen.len()
                };
                assert_eq!(found.seen.len(), n_seen, "PE {pe} has other providers");
            }
        }
        if matches!(round, Round::Findings | Round::Parts(_) | Round::Step(..)) {
            let damaged = (0..self.world.n_pes()).find(|&pe| self.is_damaged(pe));
            assert_eq!(damaged, None, "the data of this PE cannot be read");
        }
    }

    /// Checks what the members have computed, which have all become ready.
    fn check_ready(&self, decisions: &[Decisions]) -> Outcome {
        self.check_nothing_is_hidden();
        let records = self.records();
        let expected = self.world.expected(&records);
        let wanted = match self.heard_in(&Round::Findings) {
            Some(_) => self.world.expected_transport(&self.findings()),
            None => None,
        };

        let pes = 0..self.world.n_pes();
        for (me, own) in decisions.iter().enumerate() {
            let agreement = &own.agreement;
            assert_eq!(agreement.heap_address, expected.heap_address);
            assert_eq!(agreement.has_statics_apart, expected.has_statics_apart);
            let is_short = expected.cpus_per_pe.contains(&0);
            assert_eq!(agreement.is_oversubscribed_somewhere, is_short);
            assert_eq!(
                agreement.has_threads_somewhere,
                expected.has_threads_somewhere
            );
            assert_eq!(agreement.has_equal_constants, expected.has_equal_constants);
            assert_eq!(agreement.is_on_one_stack, expected.is_on_one_stack);
            assert_eq!(Some(agreement.secret), expected.secret);

            assert_eq!(own.plan.areas.receive_buffer_sets(), expected.n_sets);
            assert_eq!(own.plan, decisions[0].plan);
            assert_eq!(own.cpus_per_pe, expected.cpus_per_pe[me]);
            assert_eq!(own.facts.oversubscribed, is_short);
            assert_eq!(own.facts.members, self.world.n_pes());
            let size = |node: u32| expected.nodes.iter().filter(|&&one| one == node).count();
            let most = expected.nodes.iter().map(|&node| size(node)).max();
            assert_eq!(Some(own.facts.per_node as usize), most);

            let members = own
                .predefined
                .each_ref()
                .map(|members| members.world_pes().map(|pe| pe.0).collect::<Vec<u32>>());
            let on_node = |pe: &u32| expected.nodes[*pe as usize] == expected.nodes[me];
            let machines = &self.world.machines;
            let machine = machines.node_of(me as u32);
            assert_eq!(members[0], pes.clone().collect::<Vec<_>>());
            assert_eq!(members[1], pes.clone().filter(on_node).collect::<Vec<_>>());
            assert_eq!(members[2], machines.members(machine).collect::<Vec<_>>());

            let is_open = self
                .heard_in(&Round::Pages)
                .is_some_and(|sent| machines.members(machine).all(|pe| sent[pe as usize] == [1]));
            assert_eq!(own.uses_pages, expected.pages_are_exchanged && is_open);
            assert_eq!(own.transport, decisions[0].transport);
            assert_eq!(own.place.nodes, decisions[0].place.nodes);
        }

        let is_apart = expected.has_statics_apart || expected.nodes.iter().any(|&node| node != 0);
        let chosen = decisions[0].transport.clone();
        assert_eq!(
            chosen.is_some(),
            is_apart,
            "a transport is opened if one is needed"
        );
        assert!(
            chosen == wanted || self.is_tampered(),
            "{chosen:?} instead of {wanted:?}"
        );
        Outcome::Ready {
            by_network: is_apart,
        }
    }

    /// Returns what PE `pe` has sent in the last exchange.
    fn bytes_of(&self, pe: u32) -> &[u8] {
        let (_, sent) = self.heard.last().expect("there was an exchange");
        &sent[pe as usize]
    }

    /// Returns true if the last message of a PE is nothing that a PE sends in that step.
    fn is_damaged(&self, pe: u32) -> bool {
        let bytes = self.bytes_of(pe);
        match self.heard.last().expect("there was an exchange").0 {
            Round::Findings => decode::<Findings>(bytes).is_err(),
            Round::Parts(_) => decode::<Vec<Result<Vec<String>, String>>>(bytes).is_err(),
            Round::Step(..) => decode::<Result<(), String>>(bytes).is_err(),
            Round::Record => decode::<StartupRecord>(&bytes[BUILD_BYTES..]).is_err(),
            Round::Pages | Round::Meet => false,
        }
    }

    /// Returns true if a message is changed on its way, or a PE lacks a provider, so that another
    /// transport than the one that works may be right.
    fn is_tampered(&self) -> bool {
        self.world.pes.iter().any(|pe| {
            matches!(
                pe.trouble,
                Some(
                    Trouble::Garbage { .. }
                        | Trouble::Cut { .. }
                        | Trouble::Longer { .. }
                        | Trouble::Differs("providers")
                )
            )
        })
    }

    fn heard_in(&self, round: &Round) -> Option<&Vec<Vec<u8>>> {
        let found = self.heard.iter().find(|(known, _)| known == round);
        found.map(|(_, sent)| sent)
    }

    /// Returns the records of all PEs, which are not damaged.
    fn records(&self) -> Vec<StartupRecord> {
        let sent = self.heard_in(&Round::Record).expect("all have sent theirs");
        let record = |bytes: &Vec<u8>| decode(&bytes[BUILD_BYTES..]).expect("it is not damaged");
        sent.iter().map(record).collect()
    }

    fn findings(&self) -> Vec<Findings> {
        let sent = self
            .heard_in(&Round::Findings)
            .expect("all have sent theirs");
        let findings = |bytes: &Vec<u8>| decode(bytes).expect("they are not damaged");
        sent.iter().map(findings).collect()
    }
}

/// Returns the names of the settings in which two records differ.
fn differing_settings(one: &StartupRecord, other: &StartupRecord) -> Vec<&'static str> {
    let mut names = Vec::new();
    let mut compare = |name, differ: bool| {
        if differ {
            names.push(name);
        }
    };
    compare(
        "SHMEM_SYMMETRIC_SIZE",
        one.symmetric_size != other.symmetric_size,
    );
    compare("SHMEM_CHECK", one.check != other.check);
    compare("SHMEM_STATS", one.is_counted != other.is_counted);
    compare("SHMEM_TRACE", one.is_traced != other.is_traced);
    compare("SHMEM_HUGE_PAGES", one.huge_pages != other.huge_pages);
    compare("SHMEM_ONNODE", one.is_onnode != other.is_onnode);
    compare(
        "SHMEM_VIRTUAL_NODES",
        one.virtual_nodes != other.virtual_nodes,
    );
    names
}

/// Returns what the settings of a PE request of the network.
fn requested(findings: &Findings) -> [&str; 2] {
    [&findings.requested, &findings.amos]
}

/// Returns the numbers of the PEs that a text names.
fn pes_in(text: &str) -> Vec<u32> {
    let digits = |text: &str| {
        text.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    };
    let named = text.split("PE ").skip(1).map(digits);
    named.filter_map(|digits| digits.parse().ok()).collect()
}
