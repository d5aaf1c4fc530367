//! What a seed draws: the job, what its PEs have and find, and their troubles. Beside each value
//! that the PEs decide together, what it must be, computed in another way than the start does.

use crate::build::Build;
use crate::start::connect::attempt::StepResult;
use crate::start::connect::negotiation::{Availability, Findings};
use crate::start::connect::trial::{AmoExecutor, Offer};
use crate::start::record::{Cpus, OwnValues, StartupRecord};
use core::ffi::c_int;
use fastrand::Rng;
use rushmem_bootstrap::NodeMap;
use rushmem_pe::constants::{SHMEM_THREAD_MULTIPLE, SHMEM_THREAD_SINGLE};
use rushmem_pe::settings::Settings;
use rushmem_transport::{Amos, Provider, null};
use std::collections::BTreeSet;

/// The providers, in the order of preference.
pub(super) static PROVIDERS: [Provider; 3] = [
    Provider {
        name: "ucx",
        without_rdma: true,
        network_amos: true,
        ..null::PROVIDER
    },
    Provider {
        name: "ofi",
        network_amos: true,
        parts: Some(|_| Ok(Vec::new())),
        ..null::PROVIDER
    },
    Provider {
        name: "tcp",
        without_rdma: true,
        ..null::PROVIDER
    },
];

/// The number of steps of an attempt.
pub(super) const STEPS: u32 = 3;

/// A transport, its part and the executor of atomic operations.
pub(super) type Transport = (&'static str, Option<String>, Amos);

/// The names of the parts of the provider that has parts.
const PARTS: [&str; 3] = ["verbs", "cxi", "sockets"];

/// A job, as a seed has drawn it.
pub(super) struct World {
    pub(super) machines: NodeMap,
    /// The settings of all PEs but those that differ.
    settings: Settings,
    pub(super) pes: Vec<PeFacts>,
    /// The probability of 256 that a step of an attempt fails on a PE, or a part is missing.
    failures: u8,
    salt: u64,
}

/// What one PE has and finds.
pub(super) struct PeFacts {
    pub(super) trouble: Option<Trouble>,
    pub(super) thread_level: c_int,
    own: OwnValues,
    seen: Vec<Availability>,
    hardware_amos: Vec<String>,
    /// The settings, if they differ from those of the others.
    settings: Option<Settings>,
}

/// What is wrong with a PE. `nth` counts the messages of the PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The value of this setting, or what it stands for, is not that of the others.
    Differs(&'static str),
    /// It has another build.
    OtherBuild,
    /// It sends random bytes.
    Garbage { nth: usize },
    /// Its message ends early.
    Cut { nth: usize },
    /// More bytes follow its message.
    Longer { nth: usize },
    /// It ends before it sends a message.
    Ends { nth: usize },
    /// It cannot map its memory.
    CannotMap,
    /// It cannot open the reserved pages of its machine.
    CannotOpenPages,
}

/// What may differ: variables, and what is in a record without a variable.
const DIFFERENCES: [&str; 13] = [
    "SHMEM_SYMMETRIC_SIZE",
    "SHMEM_CHECK",
    "SHMEM_STATS",
    "SHMEM_TRACE",
    "SHMEM_HUGE_PAGES",
    "SHMEM_ONNODE",
    "SHMEM_VIRTUAL_NODES",
    "SHMEM_TRANSPORT",
    "SHMEM_AMOS",
    "forced",
    "tuned",
    "statics",
    "providers",
];

impl World {
    pub(super) fn draw(rng: &mut Rng) -> World {
        let n_pes = if rng.u8(..4) == 0 {
            rng.u32(2..=64)
        } else {
            rng.u32(2..=8)
        };
        let machines = draw_machines(rng, n_pes);
        let variables = draw_variables(rng, &machines);
        let settings = read(&variables);

        let mut pes = Vec::new();
        let threads = *rng.choice(&[0, 0, 0, 128, 255]).expect("there are some");
        let rdma = *rng.choice(&[0, 128, 240, 255]).expect("there are some");
        let addresses = draw_addresses(rng);
        let machine_values: Vec<OwnValues> = (0..machines.n_nodes())
            .map(|_| draw_values(rng, &machines, &addresses))
            .collect();
        for pe in 0..n_pes {
            let machine = machines.node_of(pe);
            let mut own = machine_values[machine as usize].clone();
            if rng.u8(..) < 16 {
                own.reserved = addresses.iter().copied().filter(|_| rng.bool()).collect();
            }
            if rng.u8(..) < 8 {
                own.statics_in_slot = None;
            }
            if rng.u8(..) < 4 {
                own.constants += 1;
            }
            // The first PE of a machine reserves pages for it.
            if machines.local_index(pe) > 0 {
                own.reserved_pages = None;
            }

            let (seen, hardware_amos) = draw_devices(rng, &settings, rdma);
            pes.push(PeFacts {
                trouble: None,
                thread_level: if rng.u8(..) < threads {
                    SHMEM_THREAD_MULTIPLE
                } else {
                    SHMEM_THREAD_SINGLE
                },
                own,
                seen,
                hardware_amos,
                settings: None,
            });
        }

        let n_troubles = *rng.choice(&[0, 0, 0, 1, 1, 1, 2]).expect("there are some");
        for _ in 0..n_troubles {
            let pe = rng.usize(..pes.len());
            let trouble = draw_trouble(rng);
            pes[pe].suffer(trouble, &variables);
        }
        World {
            machines,
            settings,
            pes,
            failures: *rng.choice(&[0, 0, 2, 40, 255]).expect("there are some"),
            salt: rng.u64(..),
        }
    }

    pub(super) fn n_pes(&self) -> u32 {
        self.machines.n_pes()
    }

    fn pe(&self, pe: u32) -> &PeFacts {
        &self.pes[pe as usize]
    }

    pub(super) fn settings(&self, pe: u32) -> &Settings {
        self.pe(pe).settings.as_ref().unwrap_or(&self.settings)
    }

    pub(super) fn own_values(&self, pe: u32) -> OwnValues {
        self.pe(pe).own.clone()
    }

    pub(super) fn build_of(&self, pe: u32) -> Build {
        // The number of providers decides the build, too.
        match self.pe(pe).trouble {
            Some(Trouble::OtherBuild) => Build::of(&PROVIDERS),
            _ => Build::of(&[]),
        }
    }

    pub(super) fn can_map(&self, pe: u32) -> bool {
        self.pe(pe).trouble != Some(Trouble::CannotMap)
    }

    /// Returns true if the PE has the reserved pages of its machine.
    pub(super) fn opens_pages(&self, pe: u32) -> bool {
        let first = self.machines.members(self.machines.node_of(pe)).next();
        let are_reserved = self
            .pe(first.expect("no machine is empty"))
            .own
            .reserved_pages
            .is_some();
        are_reserved && self.pe(pe).trouble != Some(Trouble::CannotOpenPages)
    }

    pub(super) fn providers(&self, pe: u32) -> &'static [&'static Provider] {
        static ALL: [&Provider; 3] = [&PROVIDERS[0], &PROVIDERS[1], &PROVIDERS[2]];
        match self.pe(pe).trouble {
            Some(Trouble::Differs("providers")) => &ALL[..2],
            _ => &ALL,
        }
    }

    pub(super) fn findings(&self, pe: u32) -> Findings {
        let settings = self.settings(pe);
        let mut findings = Findings {
            requested: settings.transport.clone().unwrap_or_default(),
            amos: settings.amos.map_or("", Amos::name).to_owned(),
            ..Findings::default()
        };
        if findings.requested.is_empty() {
            let n = self.providers(pe).len();
            findings.seen = self.pe(pe).seen[..n].to_vec();
        }
        findings.hardware_amos = self.pe(pe).hardware_amos.clone();
        findings
    }

    /// Returns the parts that a PE has for each executor.
    pub(super) fn offers(
        &self,
        pe: u32,
        provider: &'static str,
        executors: &[AmoExecutor],
    ) -> Vec<Offer> {
        let mut offers = Vec::new();
        for executor in executors {
            let parts = self.parts(pe, provider, executor.amos);
            offers.push(if parts.is_empty() {
                Err("no part fits".to_owned())
            } else {
                Ok(parts)
            });
        }
        offers
    }

    fn parts(&self, pe: u32, provider: &'static str, amos: Amos) -> Vec<String> {
        let has = |part: &&str| !self.fails(pe, provider, Some(part), amos, STEPS);
        let parts = PARTS.into_iter().filter(has);
        parts.map(str::to_owned).collect()
    }

    /// Returns the result of a step of an attempt on a PE.
    pub(super) fn step(
        &self,
        pe: u32,
        provider: &'static str,
        part: Option<&str>,
        amos: Amos,
        step: u32,
    ) -> StepResult {
        if self.fails(pe, provider, part, amos, step) {
            Err(format!("step {step} fails"))
        } else {
            Ok(())
        }
    }

    fn fails(&self, pe: u32, provider: &str, part: Option<&str>, amos: Amos, step: u32) -> bool {
        let part = part.map_or(0, |part| 1 + part.len() as u64);
        let what = [
            u64::from(pe),
            provider.as_bytes()[0].into(),
            part,
            amos as u64,
            step.into(),
        ];
        let seed = what
            .iter()
            .fold(self.salt, |seed, &one| Rng::with_seed(seed ^ one).u64(..));
        // The last provider works more often.
        let failures = if provider == "tcp" {
            self.failures / 8
        } else {
            self.failures
        };
        (seed >> 16) as u8 % 255 < failures
    }

    /// Returns the node that each PE must have, as numbers that only differ.
    fn expected_nodes(&self) -> Vec<u32> {
        let n_pes = self.n_pes();
        if !self.settings.onnode {
            return (0..n_pes).collect();
        }
        match self.settings.virtual_nodes.to_string().as_str() {
            "not set" => (0..n_pes).map(|pe| self.machines.node_of(pe)).collect(),
            text => {
                let mut marks = Vec::new();
                let sizes: Vec<u32> = text.split('+').map(|size| size.parse().unwrap()).collect();
                if let [n_nodes] = sizes[..] {
                    for node in 0..n_nodes {
                        let size = (n_pes - node).div_ceil(n_nodes);
                        marks.extend((0..size).map(|_| node));
                    }
                } else {
                    for (node, size) in (0..).zip(sizes) {
                        marks.extend((0..size).map(|_| node));
                    }
                }
                marks
            }
        }
    }

    /// Returns what all PEs must have computed if they become ready, without the transport.
    /// `records` are those that they have heard.
    pub(super) fn expected(&self, records: &[StartupRecord]) -> Expected {
        let first = &records[0];
        let all = |holds: &dyn Fn(&StartupRecord) -> bool| records.iter().all(holds);
        let is_threaded = |record: &StartupRecord| record.thread_level == SHMEM_THREAD_MULTIPLE;
        let is_mixed = !all(&|record| is_threaded(record) == is_threaded(first));

        let mut heap_address = None;
        for address in &first.reserved {
            if heap_address.is_none() && !is_mixed && all(&|one| one.reserved.contains(address)) {
                heap_address = Some(*address);
            }
        }

        let nodes = self.expected_nodes();
        let pes = 0..records.len();
        let has_neighbor = |pe: usize| {
            pes.clone()
                .any(|other| other != pe && nodes[other] == nodes[pe])
        };
        Expected {
            heap_address,
            has_statics_apart: pes
                .clone()
                .any(|pe| records[pe].statics_in_slot.is_none() && has_neighbor(pe)),
            cpus_per_pe: pes
                .clone()
                .map(|pe| self.expected_share(pe as u32, records))
                .collect(),
            n_sets: if all(&is_threaded) { 16 } else { 1 },
            has_threads_somewhere: records.iter().any(is_threaded),
            has_equal_constants: all(&|one| one.constants == first.constants),
            is_on_one_stack: all(&|one| one.stack == first.stack),
            secret: first.secret,
            pages_are_exchanged: !is_mixed
                && records.iter().any(|one| one.reserved_pages.is_some()),
            nodes,
        }
    }

    /// Returns the number of CPUs for each PE of the machine of a PE.
    fn expected_share(&self, pe: u32, records: &[StartupRecord]) -> u32 {
        let mut cpus = BTreeSet::new();
        let mut quota = usize::MAX;
        let on_machine: Vec<u32> = self.machines.members(self.machines.node_of(pe)).collect();
        for &pe in &on_machine {
            let own = &records[pe as usize].cpus;
            let set =
                (0..own.mask.len() * 64).filter(|cpu| own.mask[cpu / 64] >> (cpu % 64) & 1 == 1);
            let set: Vec<usize> = set.collect();
            if own.at_once < set.len() {
                quota = quota.min(own.at_once);
            }
            cpus.extend(set);
        }
        (cpus.len().min(quota) / on_machine.len()) as u32
    }

    /// Returns the transport that all PEs must choose by these findings, if any works on all; its
    /// part and the executor.
    pub(super) fn expected_transport(&self, findings: &[Findings]) -> Option<Transport> {
        let requested = &findings[0].requested;
        let mut tried = Vec::new();
        for (rank, provider) in PROVIDERS.iter().enumerate() {
            let have_rdma = findings
                .iter()
                .all(|one| one.seen.get(rank) == Some(&Availability::Rdma));
            let is_there = !findings
                .iter()
                .any(|one| matches!(one.seen.get(rank), Some(Availability::Absent(_))));
            let is_tried = if requested.is_empty() {
                is_there && (have_rdma || provider.without_rdma)
            } else {
                requested == provider.name
            };
            if is_tried {
                tried.push((!have_rdma, rank));
            }
        }
        tried.sort_unstable();
        tried
            .into_iter()
            .find_map(|(_, rank)| self.first_that_works(&PROVIDERS[rank], findings))
    }

    fn first_that_works(
        &self,
        provider: &'static Provider,
        findings: &[Findings],
    ) -> Option<Transport> {
        let name = provider.name;
        let in_hardware = |one: &Findings| one.hardware_amos.iter().any(|known| known == name);
        let executors = match findings[0].amos.as_str() {
            "network" if !provider.network_amos => return None,
            "network" => vec![Amos::Network],
            "software" => vec![Amos::Software],
            _ if provider.network_amos && findings.iter().all(in_hardware) => {
                vec![Amos::Network, Amos::Software]
            }
            _ => vec![Amos::Software],
        };

        let works = |part: Option<&str>, amos| {
            (0..self.n_pes())
                .all(|pe| (0..STEPS).all(|step| self.step(pe, name, part, amos, step).is_ok()))
        };
        if provider.parts.is_none() {
            let amos = executors.into_iter().find(|&amos| works(None, amos))?;
            return Some((name, None, amos));
        }

        // The parts for the first executor are tried before those that only the second one has.
        let is_common = |part: &str, amos| {
            (0..self.n_pes()).all(|pe| self.parts(pe, name, amos).iter().any(|one| one == part))
        };
        let mut order = Vec::new();
        for &amos in &executors {
            order.extend(PARTS.into_iter().filter(|part| is_common(part, amos)));
        }
        for part in order {
            for &amos in &executors {
                if is_common(part, amos) && works(Some(part), amos) {
                    return Some((name, Some(part.to_owned()), amos));
                }
            }
        }
        None
    }

    /// Returns true if a PE has done something for which others may name it in the choice of the
    /// transport.
    pub(super) fn lacks_something(&self, pe: u32) -> bool {
        let plain = |seen: &Availability| *seen != Availability::Rdma;
        self.failures > 0 || self.pe(pe).seen.iter().any(plain) || self.pe(pe).trouble.is_some()
    }
}

/// What all PEs must have computed.
pub(super) struct Expected {
    pub(super) heap_address: Option<usize>,
    pub(super) has_statics_apart: bool,
    /// For each PE.
    pub(super) cpus_per_pe: Vec<u32>,
    pub(super) n_sets: usize,
    pub(super) has_threads_somewhere: bool,
    pub(super) has_equal_constants: bool,
    pub(super) is_on_one_stack: bool,
    pub(super) secret: Option<[u8; 32]>,
    pub(super) pages_are_exchanged: bool,
    /// The node of each PE.
    pub(super) nodes: Vec<u32>,
}

impl PeFacts {
    fn suffer(&mut self, trouble: Trouble, variables: &[(&'static str, String)]) {
        self.trouble = Some(trouble);
        let Trouble::Differs(what) = trouble else {
            return;
        };
        match what {
            "forced" => self.own.forced += 1,
            "tuned" => self.own.tuned += 1,
            "statics" => self.own.statics += 1,
            "providers" => {}
            name => {
                let mut variables = variables.to_vec();
                variables.retain(|(known, _)| *known != name);
                variables.push((name, other_value(name).to_owned()));
                self.settings = Some(read(&variables));
            }
        }
    }
}

/// Returns a value of a setting that no world draws for all PEs.
fn other_value(name: &str) -> &'static str {
    match name {
        "SHMEM_SYMMETRIC_SIZE" => "3m",
        "SHMEM_CHECK" => "races",
        "SHMEM_STATS" => "json:file",
        "SHMEM_TRACE" => "directory",
        "SHMEM_HUGE_PAGES" => "1g",
        "SHMEM_ONNODE" => "off",
        "SHMEM_VIRTUAL_NODES" => "1",
        "SHMEM_TRANSPORT" => "ofi",
        _ => "network",
    }
}

fn read(variables: &[(&'static str, String)]) -> Settings {
    let value = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    };
    Settings::read(value).expect("the values are valid")
}

fn draw_machines(rng: &mut Rng, n_pes: u32) -> NodeMap {
    let n_machines = *rng.choice(&[1, 1, 1, 2, 3, 5]).expect("there are some");
    let by_turns = rng.bool();
    let marks = (0..n_pes).map(|pe| {
        if by_turns {
            pe % n_machines
        } else {
            pe * n_machines / n_pes
        }
    });
    NodeMap::from_marks(marks).expect("there are PEs")
}

fn draw_variables(rng: &mut Rng, machines: &NodeMap) -> Vec<(&'static str, String)> {
    let n_pes = machines.n_pes();
    let mut variables = Vec::new();
    let mut set = |rng: &mut Rng, name, values: &[&str]| {
        if rng.u8(..4) == 0 {
            let value = values[rng.usize(..values.len())];
            variables.push((name, value.to_owned()));
        }
    };
    set(
        rng,
        "SHMEM_SYMMETRIC_SIZE",
        &["0", "4m", "1.5g", "1000000t"],
    );
    set(rng, "SHMEM_CHECK", &["1", "races"]);
    set(rng, "SHMEM_HUGE_PAGES", &["on", "off", "2m"]);
    set(rng, "SHMEM_STATS", &["1"]);
    set(rng, "SHMEM_TRACE", &["traces"]);
    set(rng, "SHMEM_TRANSPORT", &["tcp", "ucx", "ofi"]);
    set(rng, "SHMEM_AMOS", &["software", "network"]);
    set(rng, "SHMEM_ONNODE", &["off"]);
    if machines.n_nodes() == 1 {
        let two = format!("1+{}", n_pes - 1);
        set(rng, "SHMEM_VIRTUAL_NODES", &["2", &two]);
    }
    variables
}

/// Returns the addresses that PEs may reserve, in the order in which all try them.
fn draw_addresses(rng: &mut Rng) -> Vec<usize> {
    (1..=rng.usize(1..4)).map(|i| i << 40).collect()
}

/// Returns the values that the PEs of a machine have in common.
fn draw_values(rng: &mut Rng, machines: &NodeMap, addresses: &[usize]) -> OwnValues {
    let has_many = rng.u8(..4) > 0;
    let n_cpus = if has_many { 64 } else { rng.usize(1..64) };
    let mask = vec![u64::MAX >> (64 - n_cpus)];
    let is_limited = rng.u8(..8) == 0;
    OwnValues {
        secret: [rng.u8(..); 32],
        stack: 1 + u64::from(machines.n_nodes() > 1 && rng.bool()),
        cpus: Cpus {
            at_once: if is_limited {
                rng.usize(1..=n_cpus)
            } else {
                n_cpus
            },
            mask,
        },
        forced: 1,
        tuned: 2,
        statics: 3,
        constants: 4,
        statics_in_slot: (rng.u8(..8) > 0).then_some(4096),
        statics_start: None,
        reserved: addresses.to_vec(),
        reserved_pages: (rng.u8(..8) == 0).then(|| (rng.u32(..), 5, 6)),
    }
}

/// Returns what a PE finds of each provider, and the names of those whose networks carry out atomic
/// operations.
fn draw_devices(rng: &mut Rng, settings: &Settings, rdma: u8) -> (Vec<Availability>, Vec<String>) {
    let mut seen = Vec::new();
    let mut hardware_amos = Vec::new();
    for provider in &PROVIDERS {
        let is_excluded = settings
            .transport
            .as_ref()
            .is_some_and(|name| name != provider.name);
        let has_rdma = rng.u8(..) < rdma;
        seen.push(if has_rdma {
            Availability::Rdma
        } else if rng.u8(..) < 16 {
            Availability::Absent("no library".to_owned())
        } else {
            Availability::Plain
        });
        if has_rdma && !is_excluded && rng.u8(..) < 200 {
            hardware_amos.push(provider.name.to_owned());
        }
    }
    (seen, hardware_amos)
}

fn draw_trouble(rng: &mut Rng) -> Trouble {
    let nth = rng.usize(..4);
    match rng.u8(..16) {
        0..6 => Trouble::Differs(DIFFERENCES[rng.usize(..DIFFERENCES.len())]),
        6 => Trouble::OtherBuild,
        7 | 8 => Trouble::Garbage { nth },
        9 | 10 => Trouble::Cut { nth },
        11 | 12 => Trouble::Longer { nth },
        13 => Trouble::Ends { nth },
        14 => Trouble::CannotMap,
        _ => Trouble::CannotOpenPages,
    }
}
