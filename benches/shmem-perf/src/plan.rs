//! The plan of a run: groups in the order in which they are measured, each of which becomes a
//! table. All PEs make the same plan from the same flags.

use std::collections::BTreeSet;

use clap::ValueEnum;

use crate::library::{Operation, OperationKind};
use crate::network::Network;
use crate::operation::bounds;
use crate::options::{Pairs, PerfOptions, TargetActivity, TargetMemory, name};
use crate::record::{Measure, Shape};
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
        let mut subjects = subjects(options, table, facts, measure);
        if !subjects.is_empty() {
            let floors = floors(options, facts, measure, table, &subjects);
            subjects.extend(floors);
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
            let names: Vec<&str> = table
                .iter()
                .map(|operation| operation.name.as_str())
                .collect();
            return Err(format!(
                "--operations {name}: there is no such operation; there are: {}",
                names.join("; ")
            ));
        }
    }
    Ok(())
}

/// Returns what is measured of the library.
fn subjects(
    options: &PerfOptions,
    table: &[Operation],
    facts: JobFacts,
    measure: Measure,
) -> Vec<Sweep> {
    let has_signals = table
        .iter()
        .any(|operation| operation.name == "put_signal round trip");

    let mut subjects = Vec::new();
    for (index, operation) in table.iter().enumerate() {
        // It does what a put with a signal does, for libraries without those: where both are
        // there, it is measured only if it is named.
        let stands_in = operation.name == "put_fence_p round trip";
        let is_usual = options.operations.is_empty();
        if is_floor(operation) || (is_usual && stands_in && has_signals) {
            continue;
        }
        if asks_for(options, measure, operation) && applies(measure, operation) {
            subjects.extend(library_subjects(options, facts, measure, index, operation));
        }
    }

    if measure == Measure::Event && options.operations.is_empty() {
        subjects.push(Sweep {
            call: Callee::Init,
            name: "init".into(),
            measure: Measure::Event,
            is_floor: false,
            sizes: vec![0],
            shape: Shape {
                n_pes: facts.n_pes,
                ..Shape::default()
            },
        });
    }
    subjects
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
    let is_one = |operation: &Operation| {
        operation.blocks_by_member && asks_for(options, Measure::Collective, operation)
    };
    wants(options, Measure::Collective) && table.iter().any(is_one)
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

/// Returns one subject, or for collectives one for each team size. Those for which no size in bytes
/// is possible are left out.
fn library_subjects(
    options: &PerfOptions,
    facts: JobFacts,
    measure: Measure,
    index: usize,
    operation: &Operation,
) -> Vec<Sweep> {
    // All PEs take part in these, whatever `--team-sizes` says.
    let is_of_all = operation.name.ends_with("barrier_all") || operation.name == "malloc and free";
    let team_sizes: Vec<Option<u32>> = if measure != Measure::Collective {
        vec![None]
    } else if options.team_sizes.is_empty() || is_of_all {
        vec![Some(facts.n_pes)]
    } else {
        options.team_sizes.iter().copied().map(Some).collect()
    };
    // A target that has to answer, or that issues operations itself, cannot compute meanwhile.
    let target_computes = options.target == TargetActivity::Computes
        && operation.kind == OperationKind::Alone
        && measure != Measure::BidirectionalBandwidth;

    let mut subjects = Vec::new();
    for team_size in team_sizes {
        let sizes = sizes(options, measure, operation, team_size.unwrap_or(1));
        if sizes.is_empty() {
            continue;
        }
        subjects.push(Sweep {
            call: Callee::Library(index),
            name: operation.name.clone(),
            measure,
            is_floor: is_floor(operation),
            sizes,
            shape: Shape {
                target_computes,
                ..shape(options, facts, measure, team_size)
            },
        });
    }
    subjects
}

/// Returns the shape of a subject; `team_size` is the number of a collective's members.
fn shape(
    options: &PerfOptions,
    facts: JobFacts,
    measure: Measure,
    team_size: Option<u32>,
) -> Shape {
    if team_size.is_some() {
        // Collectives have none of what the options say about pairs.
        return Shape {
            n_pes: facts.n_pes,
            pairs: String::new(),
            team_size,
            contexts: 0,
            threads: 1,
            window: 1,
            memory: name(TargetMemory::Heap),
            target_computes: false,
        };
    }

    let is_windowed = matches!(
        measure,
        Measure::Bandwidth | Measure::BidirectionalBandwidth | Measure::MessageRate
    );
    // Other pairs would compete with the measured one for the network.
    let is_of_one_pair = measure == Measure::Overlap;
    Shape {
        n_pes: facts.n_pes,
        pairs: name(if is_of_one_pair {
            Pairs::One
        } else {
            options.pairs
        }),
        team_size: None,
        contexts: options.contexts,
        threads: if is_of_one_pair { 1 } else { options.threads },
        window: if is_windowed { options.window } else { 1 },
        memory: name(options.memory),
        target_computes: false,
    }
}

fn sizes(options: &PerfOptions, measure: Measure, operation: &Operation, members: u32) -> Vec<u64> {
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
    let is_static = options.memory == TargetMemory::Static && measure != Measure::Collective;
    let fits = |size: &u64| {
        let is_whole = operation.least < 8 || size.is_multiple_of(8);
        let fits_into_heap = size * blocks <= options.most_bytes(blocks);
        let fits_into_static = !is_static || *size <= operation.most_static_bytes();
        *size >= operation.least && is_whole && fits_into_heap && fits_into_static
    };
    let sizes = options.sizes().into_iter().filter(fits);

    match measure {
        // By default only the smallest size: larger ones are limited by the bandwidth.
        Measure::MessageRate if options.measures.is_empty() => sizes.take(1).collect(),
        // By default no small sizes: the call itself completes these transfers.
        Measure::Overlap if options.measures.is_empty() => {
            sizes.filter(|&size| size >= 4096).collect()
        }
        _ => sizes.collect(),
    }
}

/// Returns the floors that bound any of the subjects, for one pair. Each is measured at all sizes
/// of the subjects that it bounds.
fn floors(
    options: &PerfOptions,
    facts: JobFacts,
    measure: Measure,
    table: &[Operation],
    subjects: &[Sweep],
) -> Vec<Sweep> {
    let plain = PerfOptions {
        pairs: Pairs::One,
        contexts: 0,
        threads: 1,
        memory: TargetMemory::Heap,
        ..options.clone()
    };

    let suits = |operation: &Operation| match operation.kind {
        OperationKind::Plain => {
            measure == Measure::Latency || (measure == Measure::Bandwidth && operation.most == 0)
        }
        OperationKind::PlainRoundTrip => measure == Measure::Latency && facts.n_pes > 1,
        OperationKind::Alone | OperationKind::RoundTrip | OperationKind::Collective => false,
    };
    // The sizes of all subjects that the floor of this name bounds.
    let sizes = |name: &str| -> Vec<u64> {
        let mut sizes = BTreeSet::new();
        for subject in subjects {
            if bounds(name, &subject.name) {
                sizes.extend(&subject.sizes);
            }
        }
        sizes.into_iter().collect()
    };

    let mut floors = Vec::new();
    if facts.shares_memory {
        for (index, operation) in table.iter().enumerate() {
            if !suits(operation) {
                continue;
            }
            let mut sizes = sizes(&operation.name);
            sizes.retain(|size| operation.most == 0 || operation.most == *size);
            for floor in library_subjects(&plain, facts, measure, index, operation) {
                floors.push(Sweep {
                    sizes: sizes.clone(),
                    ..floor
                });
            }
        }
    }

    if matches!(measure, Measure::Latency | Measure::Bandwidth) {
        let wire = |medium, direction, name: &str| Sweep {
            call: Callee::Wire(medium, direction),
            name: name.into(),
            measure,
            is_floor: true,
            sizes: sizes(name),
            shape: shape(&plain, facts, measure, None),
        };

        // The kernel's way between two processes of a host, for PEs that do not share memory.
        if !facts.shares_memory && facts.shares_host {
            if measure == Measure::Latency {
                floors.push(wire(Medium::Socket, Direction::Stream, "socket transfer"));
                floors.push(wire(
                    Medium::Socket,
                    Direction::RoundTrip,
                    "socket round trip",
                ));
            } else {
                floors.push(wire(Medium::Socket, Direction::Stream, "socket"));
            }
        }

        for (network, is_wanted) in Network::ALL.into_iter().zip(facts.networks) {
            if is_wanted {
                for (direction, name) in network.transfers() {
                    floors.push(wire(Medium::Network(network), direction, name));
                }
            }
        }
    }

    floors.retain(|floor| !floor.sizes.is_empty());
    floors
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

/// Returns the pairs, each the PE that issues and its peer. A PE is in one pair at most. The only
/// PE of a job is its own peer.
pub fn pairs(n_pes: u32, which: Pairs, one: Option<(u32, u32)>, seed: u64) -> Vec<(u32, u32)> {
    if n_pes == 1 {
        return vec![(0, 0)];
    }
    let half = n_pes / 2;
    match which {
        Pairs::One => vec![one.unwrap_or((0, 1))],
        Pairs::Neighbors => (0..half).map(|pair| (2 * pair, 2 * pair + 1)).collect(),
        Pairs::All => (0..half).map(|pair| (pair, pair + half)).collect(),
        Pairs::Random => {
            // All PEs have the same seed, so they draw the same pairs.
            let mut pes: Vec<u32> = (0..n_pes).collect();
            fastrand::Rng::with_seed(seed).shuffle(&mut pes);
            pes.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
        }
    }
}

#[cfg(test)]
mod tests;
