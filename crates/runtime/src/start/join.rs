//! The steps by which a PE joins its job, in order: it identifies itself, exchanges records with
//! all PEs, checks that they are compatible, maps the memory of its machine, makes the memory of
//! its node known to accesses and flags, and describes the job.
//!
//! Each step consumes the result of the one before it, so that no step can be omitted or made too
//! early. A step that fails ends the job with a message. The transport is opened later, by
//! `connect`, because a PE that initializes the library again also connects again.

use super::by_id::ById;
use super::record::{self, StartupRecord};
use super::{algorithm_table, child, locality, mistakes};
use crate::build::Build;
use crate::exit::leave;
use crate::own_pe::{self, OwnPe};
use core::ffi::c_int;
use rushmem_bootstrap::{JobSession, Joining, NodeMap, Protocol, Records};
use rushmem_collectives::choice::{ChoiceFacts, Table};
use rushmem_collectives::receive_buffer;
use rushmem_communication::access::endpoints::endpoints;
use rushmem_communication::links::Links;
use rushmem_communication::net::flags::FlagArea;
use rushmem_communication::net::network;
use rushmem_communication::status;
use rushmem_heap::huge_pages::PageSize;
use rushmem_heap::statics::PeerStatics;
use rushmem_heap::{Layout, NodeMapping, NodeMemory, Reservation, ReservedPages};
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::SHMEM_THREAD_MULTIPLE;
use rushmem_pe::digest::{digest, digest_of_bytes};
use rushmem_pe::job::members::Members;
use rushmem_pe::job::{CurrentTable, Job};
use rushmem_pe::memory::address::{self, Deltas, Images};
use rushmem_pe::memory::areas::{Areas, RECEIVE_BUFFER_SETS};
use rushmem_pe::memory::{huge_pages, shortage, statics};
use rushmem_pe::process;
use rushmem_pe::settings::{self, Settings, Statistics, VirtualNodes};
use rushmem_system::codec::{decode, encode};
use rushmem_transport::progress::cpu_sharing;
use rushmem_transport::{Directory, Pe, Provider, Segment};
use std::convert::Infallible;
use std::fmt::{self, Display, Formatter};
use std::sync::Mutex;

/// Joins the job of the launcher and the environment, or that of a unique id. The log names each
/// step, so that one can see in which a start hangs or ends.
pub(super) fn join(
    call: Call,
    providers: &[Provider],
    thread_level: c_int,
    by_id: Option<&ById>,
) -> &'static OwnPe {
    identify(call, providers, thread_level, by_id)
        .exchange()
        .agree()
        .map()
        .publish()
        .into_pe()
}

/// A PE that knows its number, its settings and who shares memory with whom.
struct Identified {
    call: Call,
    build: Build,
    session: JobSession,
    settings: Settings,
    me: Pe,
    n_pes: u32,
    thread_level: c_int,
    algorithms: Table,
    machines: NodeMap,
    /// The PEs that share memory: those of a machine, unless the environment splits it.
    nodes: NodeMap,
    /// The number of this PE's machine.
    machine: u32,
    /// The number of PEs on the machine.
    n_local: u32,
    /// The number of this PE among them.
    local: u32,
    areas: Areas,
    /// `None` if the heap does not fit into an address space.
    layout: Option<Layout>,
}

/// Reads the environment, gets the number of this PE from the launcher, and sets up the process:
/// its identity in messages, its exit handler, its log.
fn identify(
    call: Call,
    providers: &[Provider],
    thread_level: c_int,
    by_id: Option<&ById>,
) -> Identified {
    let mistakes = mistakes::apply_files();
    let settings = settings::of_this_process(providers);
    if let Ok(settings) = &settings
        && let Some(filter) = &settings.debug
    {
        rushmem_system::log::print(filter);
    }
    rushmem_system::log::debug!("start: gets its number from the launcher");

    let opened = open_session(settings.as_ref().ok(), by_id);
    // Reported only now, since a PE that has joined names itself and ends the whole job.
    let settings = settings.unwrap_or_else(|error| fail!(call, "{error}"));
    let session = opened.unwrap_or_else(|error| fail!(call, "{error}"));
    check_launch(call, &session, by_id);

    child::watch(call);
    if session.is_launched() {
        process::buffer_by_line();
        leave::at_exit();
    }

    if session.pe() == 0 {
        for mistake in mistakes {
            warning!("{mistake}");
        }
        mistakes::print_lines(&settings, providers, session.is_launched());
    }
    Identified::new(call, Build::of(providers), session, settings, thread_level)
}

/// Gets the number of this PE from the launcher or from the meeting of a unique id. Without
/// `settings`, which are then invalid, uses the defaults: only a PE that has joined can report the
/// error as one of its job.
fn open_session(
    settings: Option<&Settings>,
    by_id: Option<&ById>,
) -> Result<JobSession, rushmem_bootstrap::Error> {
    let joining = Joining {
        protocol: settings.map_or(Protocol::Any, |settings| settings.bootstrap),
        opens_libraries: !statics::own().of_static_program(),
        file: statics::remapped().and_then(|remapped| remapped.file()),
        meeting: by_id.map(ById::attendance),
        limits: settings.map(Settings::meeting_limits).unwrap_or_default(),
    };
    JobSession::open(&joining, |pe, aborter| {
        process::set_identity(Pe(pe), aborter);
    })
}

/// Ends the job with an error if `oshrun` has started this process but the library cannot see that,
/// or if the unique id disagrees with the launcher.
fn check_launch(call: Call, session: &JobSession, by_id: Option<&ById>) {
    if !session.is_launched() && statics::have_node_memory() {
        fail!(
            call,
            "oshrun started this process, but its variables are gone from the environment: the program has removed them, or \
             another copy of the library in this process has joined the job; keep the environment, and link one copy alone \
             (share/doc/rushmem/rust-reference.md says how Rust and C share one)"
        );
    }
    if let Some(by_id) = by_id {
        by_id.check_and_record(call, session.pe(), session.n_pes());
    }
}

impl Identified {
    /// Describes the PE of a session.
    fn new(
        call: Call,
        build: Build,
        session: JobSession,
        settings: Settings,
        thread_level: c_int,
    ) -> Identified {
        let me = Pe(session.pe());
        let n_pes = session.n_pes();
        let algorithms =
            algorithm_table::table(&settings).unwrap_or_else(|error| fail!(call, "{error}"));

        let machines = session.nodes().clone();
        let nodes = nodes_of_job(call, &settings, &machines);
        let machine = machines.node_of(me.0);
        let n_local = machines.size(machine);
        let local = machines.local_index(me.0);

        let mut identified = Identified {
            call,
            build,
            session,
            settings,
            me,
            n_pes,
            thread_level,
            algorithms,
            machines,
            nodes,
            machine,
            n_local,
            local,
            areas: Areas::new(n_pes, 1),
            layout: None,
        };
        if thread_level >= SHMEM_THREAD_MULTIPLE {
            identified.lay_out(RECEIVE_BUFFER_SETS);
        } else {
            identified.lay_out(1);
        }
        identified
    }

    /// Lays out this PE's memory. If threads of a PE may be in several collectives at once, there
    /// are several sets of receive buffers, which belong to different teams.
    fn lay_out(&mut self, receive_buffer_sets: usize) {
        // A heap of small pages fits into the layout for huge ones, too. That costs addresses only.
        let page = self
            .settings
            .huge_pages
            .page_size()
            .unwrap_or(PageSize::Mib2);
        self.areas = Areas::new(self.n_pes, receive_buffer_sets);
        self.layout = Layout::new(self.settings.symmetric_size, self.areas.nbytes(), page);
    }

    /// Exchanges the records of all PEs.
    fn exchange(mut self) -> Exchanged {
        rushmem_system::log::debug!("start: exchanges the records of all PEs");
        let call = self.call;

        let mut secret = [0; 32];
        if let Err(error) = getrandom::fill(&mut secret) {
            fail!(
                call,
                "the kernel gives no random bytes for the job's secret: {error}"
            );
        }

        let mut reserved = Vec::new();
        let mut pages = None;
        if let Some(layout) = &self.layout {
            reserved = Reservation::all(layout, self.n_local, self.local);
            pages = huge_pages::reserve(&self.settings, layout, self.n_local, self.local);
        }

        let own = self.record(secret, &reserved, pages.as_ref());
        let records = self.build.exchange(call, &mut self.session, &encode(&own));
        let records: Records<StartupRecord> = match records.try_map(|bytes| decode(&bytes)) {
            Ok(records) => records,
            Err((pe, error)) => fail!(call, "the record of PE {pe} cannot be read: {error}"),
        };

        let other_layout = records.position(|record| record.has_threads() != own.has_threads());
        if other_layout.is_some() {
            // Some PEs have laid out larger areas than others. All use the smaller layout, for
            // which the ranges and pages were not reserved.
            self.lay_out(1);
            let Ok(records) = records.try_map(|record| {
                Ok::<_, Infallible>(StartupRecord {
                    reserved: Vec::new(),
                    reserved_pages: None,
                    ..record
                })
            });
            return Exchanged {
                identified: self,
                reserved: Vec::new(),
                pages: None,
                records,
            };
        }

        let pages = self.share_pages(pages, &records);
        Exchanged {
            identified: self,
            reserved,
            pages,
            records,
        }
    }

    /// Returns the record of this PE. `secret` is the job's secret if this is PE 0.
    fn record(
        &self,
        secret: [u8; 32],
        reserved: &[Reservation],
        pages: Option<&ReservedPages>,
    ) -> StartupRecord {
        StartupRecord {
            symmetric_size: self.settings.symmetric_size,
            huge_pages: self.settings.huge_pages.to_string(),
            check: self.settings.check.to_string(),
            is_counted: self.settings.statistics != Statistics::No,
            is_traced: self.settings.trace.is_some(),
            forced: algorithm_table::digest_of_forced(&self.algorithms),
            tuned: algorithm_table::digest_of_tuned(&self.algorithms),
            stack: record::stack(),
            secret: (self.me == Pe(0)).then_some(secret),
            cpus: locality::usable_cpus(),
            thread_level: self.thread_level,
            statics: digest(statics::own().fingerprint()),
            constants: digest_of_bytes(statics::own().identity_of_constants()),
            statics_in_slot: statics::remapped().map(|remapped| remapped.in_slot),
            statics_start: record::prints_addresses().then(|| statics::own().start()),
            reserved: reserved.iter().map(Reservation::slice).collect(),
            reserved_pages: pages.and_then(|pages| pages.location().ok()),
        }
    }

    /// Returns the reserved pages for the heaps of this machine, if all of its PEs can open them.
    fn share_pages(
        &mut self,
        own: Option<ReservedPages>,
        records: &Records<StartupRecord>,
    ) -> Option<ReservedPages> {
        // Without reserved pages on any machine, no PE takes part in the exchange below.
        records.position(|record| record.reserved_pages.is_some())?;

        // The first PE of each machine has reserved them, and the others open them.
        let first = self.machines.members(self.machine).next()?;
        let mut pages = own;
        if pages.is_none()
            && let Some(reserved) = records[first].reserved_pages
            && let Some(layout) = &self.layout
        {
            match ReservedPages::open(layout, reserved) {
                Ok(opened) => pages = Some(opened),
                Err(why) => rushmem_system::log::debug!(%why, "cannot open reserved pages"),
            }
        }

        let opened = match self.session.exchange(&[u8::from(pages.is_some())]) {
            Ok(opened) => opened,
            Err(error) => fail!(self.call, "{error}"),
        };
        let mut members = self.machines.members(self.machine);
        if members.all(|pe| opened[pe] == [1]) {
            pages
        } else {
            None
        }
    }

    /// Makes the memory of this node's PEs known to accesses. Returns the distances of their heaps
    /// from the heap of this PE.
    fn publish_deltas(&self, memory: &NodeMemory) -> [Deltas; 2] {
        let node = self.nodes.node_of(self.me.0);
        let mut heap_deltas = Vec::new();
        let mut statics_deltas = Vec::new();
        for peer in 0..self.n_pes {
            if self.nodes.node_of(peer) == node {
                let local = self.machines.local_index(peer);
                heap_deltas.push(Some(memory.delta(local)));
                statics_deltas.push(memory.statics_delta(local));
            } else {
                // Memory of other nodes is not accessed by the CPU, even if it is mapped, as that
                // of virtual nodes is.
                heap_deltas.push(None);
                statics_deltas.push(None);
            }
        }

        let deltas = [heap_deltas, statics_deltas]
            .map(|deltas| Deltas::of_table(Box::leak(Deltas::table(deltas.into_iter()))));
        address::publish(deltas[0], deltas[1]);
        deltas
    }

    /// Returns the number of CPUs that the PEs of a machine may use together.
    fn usable_cpus(&self, machine: u32, records: &Records<StartupRecord>) -> usize {
        locality::cpus_of_machine(self.machines.members(machine).map(|pe| &records[pe].cpus))
    }

    /// Returns the number of CPUs for each PE of a machine; 0 if PEs outnumber the CPUs.
    fn cpus_per_pe(&self, machine: u32, records: &Records<StartupRecord>) -> u32 {
        let share = self.usable_cpus(machine, records) / self.machines.size(machine) as usize;
        u32::try_from(share).unwrap_or(u32::MAX)
    }
}

/// Returns the settings that must be equal on all PEs.
fn equal_settings(record: &StartupRecord) -> [(&str, SettingValue<'_>); 5] {
    [
        (
            "SHMEM_SYMMETRIC_SIZE",
            SettingValue::Bytes(record.symmetric_size),
        ),
        ("SHMEM_CHECK", SettingValue::Text(&record.check)),
        ("SHMEM_STATS", SettingValue::IsSet(record.is_counted)),
        ("SHMEM_TRACE", SettingValue::IsSet(record.is_traced)),
        ("SHMEM_HUGE_PAGES", SettingValue::Text(&record.huge_pages)),
    ]
}

/// The value of a setting in a record.
#[derive(PartialEq)]
enum SettingValue<'a> {
    Bytes(u64),
    Text(&'a str),
    IsSet(bool),
}

impl Display for SettingValue<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Bytes(nbytes) => write!(f, "{nbytes} bytes"),
            SettingValue::Text(text) => f.write_str(text),
            SettingValue::IsSet(is_set) => f.write_str(if *is_set { "set" } else { "not set" }),
        }
    }
}

/// A PE that knows the records of all PEs.
struct Exchanged {
    identified: Identified,
    reserved: Vec<Reservation>,
    pages: Option<ReservedPages>,
    records: Records<StartupRecord>,
}

impl Exchanged {
    /// Ends the job with an error if a value that must be equal differs between PEs; otherwise
    /// agrees on the address of the heap.
    fn agree(self) -> Compatible {
        rushmem_system::log::debug!("start: compares what the PEs have in common");
        let Exchanged {
            identified,
            reserved,
            pages,
            records,
        } = self;
        let call = identified.call;
        let me = identified.me;
        let own = &records[me.0];

        let here = equal_settings(own);
        if let Some(pe) = records.position(|record| equal_settings(record) != here) {
            let there = equal_settings(&records[pe]);
            for ((name, here), (_, there)) in here.iter().zip(&there) {
                if here != there {
                    fail!(
                        call,
                        "{name} is {here} here and {there} on PE {pe}; it must be the same on all"
                    );
                }
            }
        }

        if let Some(pe) = records.position(|record| record.forced != own.forced) {
            fail!(
                call,
                "PE {pe} and PE {me} have different algorithms in the variables SHMEM_..._ALGORITHM; they must be the same on all"
            );
        }
        if let Some(pe) = records.position(|record| record.tuned != own.tuned) {
            fail!(
                call,
                "PE {pe} and PE {me} read different rows from the file of SHMEM_COLL_TUNING; give each host the same file"
            );
        }
        if let Some(pe) = records.position(|record| record.statics != own.statics) {
            fail!(
                call,
                "PE {pe} runs another program than PE {me}: its static data are laid out differently; \
                 start all PEs with the same executable"
            );
        }

        let heap_address = record::common_heap_address(&records);
        // The other reservations are released.
        let reserved = reserved
            .into_iter()
            .find(|reservation| Some(reservation.slice()) == heap_address);
        record::report_addresses(me, &records, heap_address);
        let has_equal_heap_addresses = heap_address.is_some() || records.n_pes() == 1;
        Compatible {
            identified,
            reserved,
            pages,
            has_equal_heap_addresses,
            records,
        }
    }
}

/// A PE that is compatible with all others.
struct Compatible {
    identified: Identified,
    /// The reserved range at the address that all PEs use for the heap, if there is one.
    reserved: Option<Reservation>,
    pages: Option<ReservedPages>,
    has_equal_heap_addresses: bool,
    records: Records<StartupRecord>,
}

impl Compatible {
    /// Maps the memory of all PEs of the machine.
    fn map(self) -> Mapped {
        rushmem_system::log::debug!("start: maps the memory of its machine");
        let Compatible {
            identified: mut pe,
            reserved,
            pages,
            has_equal_heap_addresses,
            records,
        } = self;
        let n_local = pe.n_local;
        let symmetric_size = pe.settings.symmetric_size;

        // There is no file under `oshrun`, where the static data are in the memory of the node.
        let mut files = pe.session.take_node_files().into_iter();
        let mut peers = Vec::new();
        for peer in pe.machines.members(pe.machine) {
            let file = files.next().flatten();
            let in_slot = records[peer].statics_in_slot;
            peers.push(in_slot.map(|in_slot| PeerStatics { in_slot, file }));
        }

        let published_bytes = Directory::most_bytes(pe.n_pes, rushmem_bootstrap::MAX_RECORD);
        let mapped = match pe.layout {
            Some(layout) => NodeMemory::map(NodeMapping {
                memory: pe.session.take_node_memory(),
                layout,
                n_local,
                local: pe.local,
                reserved,
                pages: pages.as_ref(),
                published_bytes,
                statics: statics::own(),
                peers: &peers,
            }),
            None => Err(rushmem_heap::Error::TooLarge),
        };
        let memory = match mapped {
            Ok(memory) => Box::leak(Box::new(memory)),
            Err(error) => fail!(
                pe.call,
                "a symmetric heap of {symmetric_size} bytes for each of {n_local} PEs cannot be mapped: {error}; {}",
                error.remedy()
            ),
        };

        locality::place_memory(memory, &records[pe.me.0].cpus);
        huge_pages::apply_setting(memory, &pe.settings, pe.me);
        if pe.local == 0 && !memory.has_reserved_pages() {
            shortage::record(symmetric_size, n_local);
        }
        Mapped {
            identified: pe,
            memory,
            has_equal_heap_addresses,
            records,
        }
    }
}

/// A PE that has the memory of its machine.
struct Mapped {
    identified: Identified,
    memory: &'static NodeMemory,
    has_equal_heap_addresses: bool,
    records: Records<StartupRecord>,
}

impl Mapped {
    /// Makes the memory of this node's PEs known to accesses and flags, and chooses a NIC if some
    /// memory of peers is not mapped.
    fn publish(self) -> Published {
        rushmem_system::log::debug!("start: publishes the memory of its node");
        let Mapped {
            identified: pe,
            memory,
            has_equal_heap_addresses,
            records,
        } = self;
        let deltas = pe.publish_deltas(memory);

        let nodes = &pe.nodes;
        let has_statics_apart = has_statics_apart(nodes, &records);
        if nodes.n_nodes() > 1 || has_statics_apart {
            let members = pe.machines.members(pe.machine);
            let cpus_of_machine = members.map(|pe| &records[pe].cpus);
            locality::choose_nic(&pe.settings.nic, cpus_of_machine, pe.local);
        }

        if let Some(why) = statics::refusal() {
            rushmem_system::log::debug!(
                "the static data of this PE are not in shared memory: {why}"
            );
        }
        let usable_cpus = pe.usable_cpus(pe.machine, &records);
        rushmem_system::log::debug!(
            n_pes = pe.n_pes,
            n_local = pe.n_local,
            usable_cpus,
            heap_bytes = memory.layout().heap_bytes(),
            n_nodes = nodes.n_nodes(),
            static_bytes = statics::own().nbytes(),
            static_data = if has_statics_apart {
                "by the transport"
            } else {
                "like the heap"
            },
            "joined the job"
        );

        let images_of = |segment, deltas| -> &'static Images {
            Box::leak(Box::new(Images::new(segment, deltas)))
        };
        let internal = images_of(Segment::Internal, deltas[0]);
        let area = FlagArea::new(memory, pe.areas, internal, endpoints());
        Published {
            identified: pe,
            memory,
            area,
            images: [
                images_of(Segment::Heap, deltas[0]),
                images_of(Segment::Static, deltas[1]),
            ],
            has_equal_heap_addresses,
            records,
        }
    }
}

/// A PE that can access the memory of its node.
struct Published {
    identified: Identified,
    memory: &'static NodeMemory,
    area: FlagArea,
    images: [&'static Images; 2],
    has_equal_heap_addresses: bool,
    records: Records<StartupRecord>,
}

impl Published {
    /// Creates the PE: the description of its job, its links and the predefined teams.
    fn into_pe(self) -> &'static OwnPe {
        rushmem_system::log::debug!("start: describes the job");
        let Published {
            identified: mut pe,
            memory,
            area,
            images,
            has_equal_heap_addresses,
            records,
        } = self;
        let me = pe.me;
        let n_pes = pe.n_pes;
        let world = Members::world(n_pes);

        let cpus_per_pe = pe.cpus_per_pe(pe.machine, &records);
        let n_cpus = pe.usable_cpus(pe.machine, &records).max(1);
        let pes_per_cpu = (pe.machines.size(pe.machine) as usize).div_ceil(n_cpus);
        cpu_sharing::set_pes_per_cpu(pes_per_cpu as u32);
        let mut machines = 0..pe.machines.n_nodes();
        let is_oversubscribed_somewhere =
            machines.any(|machine| pe.cpus_per_pe(machine, &records) == 0);
        let has_threads_somewhere = records.position(StartupRecord::has_threads).is_some();

        let facts = ChoiceFacts {
            members: n_pes,
            per_node: world.per_node(&pe.nodes),
            oversubscribed: is_oversubscribed_somewhere,
            receive_buffer_bytes: receive_buffer::nbytes(n_pes),
            pair_flags: true,
            lines: true,
        };
        pe.algorithms.retain_for(&facts);
        if me == Pe(0) {
            algorithm_table::show(&pe.algorithms, &facts);
        }

        let predefined = [
            world,
            node_members(&pe.nodes, me),
            node_members(&pe.machines, me),
        ];

        let own = &records[me.0];
        let has_equal_constants = records
            .position(|record| record.constants != own.constants)
            .is_none();
        let is_on_one_stack = records
            .position(|record| record.stack != own.stack)
            .is_none();
        let job = Job {
            me,
            n_pes,
            has_statics_apart: has_statics_apart(&pe.nodes, &records),
            is_alone_on_node: pe.nodes.size(pe.nodes.node_of(me.0)) == 1,
            nodes: pe.nodes,
            map: address::of_process(),
            images,
            memory,
            allocator: Mutex::new(None),
            cpus_per_pe,
            is_oversubscribed: cpus_per_pe == 0,
            is_oversubscribed_somewhere,
            has_equal_heap_addresses,
            has_equal_constants,
            thread_level: pe.thread_level,
            has_threads_somewhere,
            secret: records[0].secret.expect("the record of PE 0 has it"),
            is_on_one_stack,
            settings: pe.settings,
            algorithms: CurrentTable::new(Box::leak(Box::new(pe.algorithms))),
            session: Mutex::new(pe.session),
        };

        let links = Links::new(job, area, network::of_process(), endpoints());
        let own: &OwnPe = Box::leak(Box::new(OwnPe::new(Box::leak(Box::new(links)), predefined)));
        own_pe::set(own);
        status::begin(own.links);

        // `oshrun` reads the statuses in the memory of the node, where the slices of the PEs are
        // `stride` bytes apart.
        let status = own.links.area.areas().status();
        let in_slice = memory.internal().addr() - memory.heap().addr() + status;
        let stride = memory.layout().stride() as u64;
        let reported = own.job().session().report_statuses(stride, in_slice as u64);
        if let Err(error) = reported {
            fail!(pe.call, "{error}");
        }
        own
    }
}

/// Returns true if the static data of some PE are not in shared memory although it shares a node
/// with other PEs. These need a transport for the static data.
fn has_statics_apart(nodes: &NodeMap, records: &Records<StartupRecord>) -> bool {
    (0..nodes.n_pes()).any(|pe| {
        let has_neighbors = nodes.size(nodes.node_of(pe)) > 1;
        has_neighbors && records[pe].statics_in_slot.is_none()
    })
}

/// Returns the nodes of the job: the PEs of each machine, unless a setting splits it.
fn nodes_of_job(call: Call, settings: &Settings, machines: &NodeMap) -> NodeMap {
    let n_pes = machines.n_pes();
    if !settings.onnode {
        // A node for each PE, so that no two PEs share memory.
        return NodeMap::from_runs((0..n_pes).map(|node| (node, 1))).expect("no node is empty");
    }
    if settings.virtual_nodes == VirtualNodes::No {
        return machines.clone();
    }

    let Some(sizes) = settings.virtual_nodes.sizes(n_pes) else {
        fail!(
            call,
            "SHMEM_VIRTUAL_NODES does not fit the {n_pes} PEs of the job: no node may be empty, \
             and a list must add up to them"
        )
    };
    if machines.n_nodes() > 1 {
        fail!(
            call,
            "SHMEM_VIRTUAL_NODES splits one machine, but the job is on several"
        );
    }
    NodeMap::from_runs((0..).zip(sizes)).expect("no node is empty")
}

/// Returns the PEs, including this one, of the group of `nodes` in which this PE is: a node or a
/// machine.
fn node_members(nodes: &NodeMap, me: Pe) -> Members {
    Members::listed(nodes.members(nodes.node_of(me.0)).collect())
}
