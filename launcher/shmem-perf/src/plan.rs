//! The plan of a run: groups in the order in which they are measured, each of which becomes a
//! table. All PEs make the same plan from the same flags.
//!
//! A new operation has its loop and its row in `launcher/shmem-perf/c`, and is described in
//! docs/measuring.md.

use std::collections::BTreeSet;

use clap::ValueEnum;

use crate::library::{Operation, OperationKind};
use crate::network::Network;
use crate::operation::bounds;
use crate::options::{Pairs, PerfOptions, TargetActivity, TargetMemory, name};
use crate::record::{Measure, Pair, Shape};
use crate::wire::Direction;

/// The subjects of one table, whose rows are sizes or operations.
#[derive(Clone, Debug)]
pub struct Group {
    pub title: String,
    /// True if each row is a size and each column an operation.
    pub is_by_size: bool,
    pub subjects: Vec<Sweep>,
}

/// The code that a measurement calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// An operation of the library's table, by its index.
    Library(usize),
    /// An exchange between two PEs without the library.
    Wire(Medium, Direction),
    /// The start of the job, which was timed when the PE joined.
    Init,
}

/// The medium that connects PEs without the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    Socket,
    /// A library for networks, called directly.
    Network(Network),
}

/// One operation at several sizes.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub call: Callee,
    pub name: String,
    pub measure: Measure,
    /// True if the machine does it without the library: a lower bound for the library's time.
    pub is_floor: bool,
    /// Sizes in bytes, ascending; only 0 if the operation has no size.
    pub sizes: Vec<u64>,
    /// The PEs, contexts and memory with which it is measured.
    pub shape: Shape,
}

/// The facts about the job on which the plan depends.
#[derive(Clone, Copy, Debug)]
pub struct JobFacts {
    pub n_pes: u32,
    /// True if the PEs of the first pair share memory.
    pub shares_memory: bool,
    /// True if the PEs of the first pair are on one host.
    pub shares_host: bool,
    /// For each network of [`Network::ALL`], true if it is also measured without the library.
    pub networks: [bool; Network::ALL.len()],
}

/// Returns the operations of which `measure` is measured by default.
fn default_operations(measure: Measure) -> &'static [&'static str] {
    match measure {
        Measure::Latency => &[
            "put",
            "get",
            "put_signal round trip",
            "put_fence_p round trip",
            "p",
            "g",
            "fetch_add",
            "compare_swap",
            "add",
            "p round trip",
        ],
        Measure::Bandwidth => &["put_nbi", "get_nbi"],
        Measure::BidirectionalBandwidth => &["put_nbi"],
        Measure::MessageRate => &["put", "put_nbi", "get_nbi", "p", "add", "fetch_add_nbi"],
        Measure::Overlap => &["put_nbi", "get_nbi"],
        Measure::Collective => &[
            "barrier_all",
            "sum_reduce",
            "broadcast",
            "fcollect",
            "alltoall",
            "team_split_strided and destroy",
        ],
        Measure::Event => &[],
    }
}

/// Returns the plan.
///
/// # Errors
/// One sentence if the flags name an unknown operation, or leave nothing to measure.
pub fn plan(
    options: &PerfOptions,
    table: &[Operation],
    facts: JobFacts,
) -> Result<Vec<Group>, String> {
    check_operations(options, table)?;

    let mut groups = Vec::new();
    for &measure in Measure::value_variants() {
        if !wants(options, measure) {
            continue;
        }
        let planner = Planner {
            options,
            table,
            facts,
            measure,
        };
        let mut subjects = planner.subjects();
        if !subjects.is_empty() {
            subjects.extend(planner.floors(&subjects));
            groups.extend(tables(measure, subjects));
        }
    }

    if groups.is_empty() {
        return Err(
            "nothing is left to measure: these measures do not apply to these operations and sizes"
                .into(),
        );
    }
    Ok(groups)
}

/// Refuses names of operations that the library does not have.
fn check_operations(options: &PerfOptions, table: &[Operation]) -> Result<(), String> {
    for name in &options.operations {
        if name != "all" && !table.iter().any(|operation| is_called(operation, name)) {
            let names = table.iter().map(|operation| operation.name.as_str());
            let names: Vec<&str> = names.collect();
            return Err(format!(
                "--operations {name}: there is no such operation; there are: {}",
                names.join("; ")
            ));
        }
    }
    Ok(())
}

fn wants(options: &PerfOptions, measure: Measure) -> bool {
    options.measures.is_empty() || options.measures.contains(&measure)
}

fn asks_for(options: &PerfOptions, measure: Measure, operation: &Operation) -> bool {
    match options.operations.as_slice() {
        [] => default_operations(measure).contains(&operation.name.as_str()),
        names => names
            .iter()
            .any(|name| name == "all" || is_called(operation, name)),
    }
}

/// Returns true if the options select a collective whose buffers hold a block for each member.
pub fn needs_blocks(options: &PerfOptions, table: &[Operation]) -> bool {
    let measure = Measure::Collective;
    wants(options, measure)
        && table
            .iter()
            .any(|operation| operation.blocks_by_member && asks_for(options, measure, operation))
}

/// Returns true if a name denotes an operation: `put_signal` also denotes `put_signal round trip`.
fn is_called(operation: &Operation, name: &str) -> bool {
    operation
        .name
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn is_floor(operation: &Operation) -> bool {
    matches!(
        operation.kind,
        OperationKind::Plain | OperationKind::PlainRoundTrip
    )
}

fn applies(measure: Measure, operation: &Operation) -> bool {
    let is_alone = operation.kind == OperationKind::Alone;
    match measure {
        Measure::Latency => operation.kind != OperationKind::Collective,
        Measure::Bandwidth | Measure::BidirectionalBandwidth => {
            is_alone && operation.least > 0 && operation.most == 0
        }
        Measure::MessageRate => is_alone && operation.least > 0,
        Measure::Overlap => operation.overlaps,
        Measure::Collective => operation.kind == OperationKind::Collective,
        Measure::Event => false,
    }
}

/// Plans one measure.
#[derive(Clone, Copy)]
struct Planner<'a> {
    options: &'a PerfOptions,
    table: &'a [Operation],
    facts: JobFacts,
    measure: Measure,
}

impl Planner<'_> {
    /// Returns what is measured of the library.
    fn subjects(&self) -> Vec<Sweep> {
        let is_usual = self.options.operations.is_empty();
        let has_signals = self
            .table
            .iter()
            .any(|operation| operation.name == "put_signal round trip");

        let mut subjects = Vec::new();
        for (index, operation) in self.table.iter().enumerate() {
            // It does what a put with a signal does, for libraries without those: where both are
            // there, it is measured only if it is named.
            let stands_in = operation.name == "put_fence_p round trip";
            if is_floor(operation) || (is_usual && stands_in && has_signals) {
                continue;
            }
            let is_wanted = asks_for(self.options, self.measure, operation);
            if is_wanted && applies(self.measure, operation) {
                subjects.extend(self.sweeps(index, operation));
            }
        }

        if self.measure == Measure::Event && is_usual {
            subjects.push(Sweep {
                call: Callee::Init,
                name: "init".into(),
                measure: Measure::Event,
                is_floor: false,
                sizes: vec![0],
                shape: Shape {
                    n_pes: self.facts.n_pes,
                    ..Shape::default()
                },
            });
        }
        subjects
    }

    /// Returns one sweep of an operation, or for collectives one for each team size. Sweeps for
    /// which no size in bytes is possible are left out.
    fn sweeps(&self, index: usize, operation: &Operation) -> Vec<Sweep> {
        // All PEs take part in these, whatever `--team-sizes` says.
        let is_of_all =
            operation.name.ends_with("barrier_all") || operation.name == "malloc and free";
        let team_sizes: Vec<Option<u32>> = if self.measure != Measure::Collective {
            vec![None]
        } else if self.options.team_sizes.is_empty() || is_of_all {
            vec![Some(self.facts.n_pes)]
        } else {
            self.options.team_sizes.iter().copied().map(Some).collect()
        };

        // A target that has to answer, or that issues operations itself, cannot compute meanwhile.
        let target_computes = self.options.target == TargetActivity::Computes
            && operation.kind == OperationKind::Alone
            && self.measure != Measure::BidirectionalBandwidth;

        let mut sweeps = Vec::new();
        for team_size in team_sizes {
            let sizes = self.sizes(operation, team_size.unwrap_or(1));
            if sizes.is_empty() {
                continue;
            }
            sweeps.push(Sweep {
                call: Callee::Library(index),
                name: operation.name.clone(),
                measure: self.measure,
                is_floor: is_floor(operation),
                sizes,
                shape: Shape {
                    target_computes,
                    ..self.shape(team_size)
                },
            });
        }
        sweeps
    }

    /// Returns the shape of a sweep; `team_size` is the number of a collective's members.
    fn shape(&self, team_size: Option<u32>) -> Shape {
        if team_size.is_some() {
            // Collectives have none of what the options say about pairs.
            return Shape {
                n_pes: self.facts.n_pes,
                pairs: String::new(),
                team_size,
                contexts: 0,
                threads: 1,
                window: 1,
                memory: name(TargetMemory::Heap),
                target_computes: false,
            };
        }

        let options = self.options;
        let is_windowed = matches!(
            self.measure,
            Measure::Bandwidth | Measure::BidirectionalBandwidth | Measure::MessageRate
        );
        let mut shape = Shape {
            n_pes: self.facts.n_pes,
            pairs: name(options.pairs),
            team_size: None,
            contexts: options.contexts,
            threads: options.threads,
            window: if is_windowed { options.window } else { 1 },
            memory: name(options.memory),
            target_computes: false,
        };
        if self.measure == Measure::Overlap {
            // Others would compete with the one that is measured for the network and the CPU.
            shape.pairs = name(Pairs::One);
            shape.threads = 1;
        }
        shape
    }

    fn sizes(&self, operation: &Operation, members: u32) -> Vec<u64> {
        if operation.least == 0 {
            return vec![0];
        }
        if operation.most == operation.least {
            return vec![operation.least];
        }

        let blocks = if operation.blocks_by_member {
            u64::from(members)
        } else {
            1
        };
        let most_heap_bytes = self.options.most_bytes(blocks);
        let is_static =
            self.options.memory == TargetMemory::Static && self.measure != Measure::Collective;

        let mut sizes = self.options.sizes();
        sizes.retain(|size| {
            // An operation on words moves whole ones.
            let is_whole = operation.least < 8 || size.is_multiple_of(8);
            let fits_into_heap = size * blocks <= most_heap_bytes;
            let fits_into_static = !is_static || *size <= operation.most_static_bytes();
            *size >= operation.least && is_whole && fits_into_heap && fits_into_static
        });

        if self.options.measures.is_empty() {
            match self.measure {
                // Only the smallest size: larger ones are limited by the bandwidth.
                Measure::MessageRate => sizes.truncate(1),
                // No small sizes: the call itself completes these transfers.
                Measure::Overlap => sizes.retain(|size| *size >= 4096),
                _ => {}
            }
        }
        sizes
    }

    /// Returns the floors that bound any of the subjects, for one pair. Each is measured at all
    /// sizes of the subjects that it bounds.
    fn floors(&self, subjects: &[Sweep]) -> Vec<Sweep> {
        let options = PerfOptions {
            pairs: Pairs::One,
            contexts: 0,
            threads: 1,
            memory: TargetMemory::Heap,
            ..self.options.clone()
        };
        let planner = Planner {
            options: &options,
            ..*self
        };

        let mut floors = Vec::new();
        if self.facts.shares_memory {
            floors.extend(planner.memory_floors(subjects));
        }
        if matches!(self.measure, Measure::Latency | Measure::Bandwidth) {
            floors.extend(planner.wire_floors(subjects));
        }
        floors.retain(|floor| !floor.sizes.is_empty());
        floors
    }

    /// Returns the floors by loads and stores.
    fn memory_floors(&self, subjects: &[Sweep]) -> Vec<Sweep> {
        let mut floors = Vec::new();
        for (index, operation) in self.table.iter().enumerate() {
            if !self.is_memory_floor(operation) {
                continue;
            }
            let mut sizes = bounded_sizes(&operation.name, subjects);
            // A floor with a largest size, such as a store, has no other size.
            sizes.retain(|size| operation.most == 0 || operation.most == *size);

            for floor in self.sweeps(index, operation) {
                floors.push(Sweep {
                    sizes: sizes.clone(),
                    ..floor
                });
            }
        }
        floors
    }

    /// Returns true if an operation is a floor by loads and stores that has this measure.
    fn is_memory_floor(&self, operation: &Operation) -> bool {
        match (operation.kind, self.measure) {
            (OperationKind::Plain, Measure::Latency) => true,
            // An operation of a single size has no bandwidth.
            (OperationKind::Plain, Measure::Bandwidth) => operation.most == 0,
            (OperationKind::PlainRoundTrip, Measure::Latency) => self.facts.n_pes > 1,
            _ => false,
        }
    }

    /// Returns the floors of media that connect the PEs without the library.
    fn wire_floors(&self, subjects: &[Sweep]) -> Vec<Sweep> {
        let floor = |medium, direction, name: &str| Sweep {
            call: Callee::Wire(medium, direction),
            name: name.into(),
            measure: self.measure,
            is_floor: true,
            sizes: bounded_sizes(name, subjects),
            shape: self.shape(None),
        };

        let mut floors = Vec::new();
        // The kernel's way between two processes of a host, for PEs that do not share memory.
        if !self.facts.shares_memory && self.facts.shares_host {
            let socket = Medium::Socket;
            if self.measure == Measure::Latency {
                floors.push(floor(socket, Direction::Stream, "socket transfer"));
                floors.push(floor(socket, Direction::RoundTrip, "socket round trip"));
            } else {
                floors.push(floor(socket, Direction::Stream, "socket"));
            }
        }

        for (network, is_wanted) in Network::ALL.into_iter().zip(self.facts.networks) {
            if is_wanted {
                let medium = Medium::Network(network);
                floors.push(floor(medium, Direction::Put, network.put_name()));
                floors.push(floor(medium, Direction::Get, network.get_name()));
            }
        }
        floors
    }
}

/// Returns the sizes of all subjects that the floor of this name bounds.
fn bounded_sizes(floor: &str, subjects: &[Sweep]) -> Vec<u64> {
    let mut sizes = BTreeSet::new();
    for subject in subjects {
        if bounds(floor, &subject.name) {
            sizes.extend(&subject.sizes);
        }
    }
    sizes.into_iter().collect()
}

/// Divides the subjects of a measure into two tables: subjects with a single size, and subjects
/// with several sizes. Leaves out an empty table.
fn tables(measure: Measure, subjects: Vec<Sweep>) -> Vec<Group> {
    let (single, sized): (Vec<Sweep>, Vec<Sweep>) = subjects
        .into_iter()
        .partition(|subject| subject.sizes.len() == 1);

    let mut groups = Vec::new();
    for (is_by_size, subjects) in [(false, single), (true, sized)] {
        if !subjects.is_empty() {
            groups.push(Group {
                title: title(measure, is_by_size).to_owned(),
                is_by_size,
                subjects,
            });
        }
    }
    groups
}

fn title(measure: Measure, is_by_size: bool) -> &'static str {
    match measure {
        Measure::Latency if is_by_size => "Latency by size: median (99 % are not above)",
        Measure::Latency => "Latency",
        Measure::Bandwidth => "Bandwidth by size: median",
        Measure::BidirectionalBandwidth => "Bandwidth of both ways at once by size: median",
        Measure::MessageRate => "Message rate",
        Measure::Overlap => "Overlap: part of a transfer's time in which the PE can compute",
        Measure::Collective if is_by_size => {
            "Collectives by size: median of the slowest member (99 % are not above)"
        }
        Measure::Collective => "Collectives without a size, the slowest member",
        Measure::Event => "Start",
    }
}

/// Returns the pairs that measure. A PE is in one pair at most. The only PE of a job is its own
/// peer.
pub fn pairs(options: &PerfOptions, n_pes: u32) -> Vec<Pair> {
    if n_pes == 1 {
        return vec![Pair { from: 0, to: 0 }];
    }

    let half = n_pes / 2;
    let mut pairs = Vec::new();
    match options.pairs {
        Pairs::One => pairs.push(options.pair.unwrap_or(Pair { from: 0, to: 1 })),
        Pairs::Neighbors => {
            for i in 0..half {
                pairs.push(Pair {
                    from: 2 * i,
                    to: 2 * i + 1,
                });
            }
        }
        Pairs::All => {
            for i in 0..half {
                pairs.push(Pair {
                    from: i,
                    to: i + half,
                });
            }
        }
        Pairs::Random => {
            // All PEs have the same seed, so they draw the same pairs.
            let mut pes: Vec<u32> = (0..n_pes).collect();
            fastrand::Rng::with_seed(options.seed).shuffle(&mut pes);
            for two in pes.chunks_exact(2) {
                pairs.push(Pair {
                    from: two[0],
                    to: two[1],
                });
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests;
