//! The first step of a start: the PE learns its number and its settings, and finds its place among
//! the machines and nodes of the job. The process gets its identity in messages, its exit handler
//! and its log.

use super::by_id::ById;
use super::error::StartError;
use super::{child, user_settings};
use crate::build::Build;
use crate::exit::leave;
use core::ffi::c_int;
use rushmem_bootstrap::{self as bootstrap, JoinOptions, Membership, NodeMap, Protocol};
use rushmem_collectives::choice::Table;
use rushmem_pe::call::warning::warning;
use rushmem_pe::memory::statics;
use rushmem_pe::process;
use rushmem_pe::settings::{self, Settings, VirtualNodes};
use rushmem_transport::{Pe, Provider};
use std::fs::File;
use std::io::{self, Read};
use std::mem::ManuallyDrop;
use std::os::unix::fs::OpenOptionsExt;

/// Maximum size of a file of rows in bytes, far more than `shmem-perf tune` writes.
const MAX_FILE: u64 = 1 << 20;

/// A PE that knows its number, its settings and who shares memory with whom.
pub(super) struct Identified {
    /// Never dropped: if a later step is refused, the other PEs must not see a closed connection
    /// and report the end of this PE before it has said why.
    pub(super) membership: ManuallyDrop<Membership>,
    pub(super) build: Build,
    pub(super) settings: Settings,
    pub(super) thread_level: c_int,
    pub(super) algorithms: Table,
    pub(super) place: Place,
}

/// Reads the environment and gets the number of this PE: from the launcher, or from the meeting of
/// a unique id.
///
/// # Errors
/// If a setting or the unique id is invalid, or the launcher does not answer.
pub(super) fn identify(
    providers: &[Provider],
    thread_level: c_int,
    by_id: Option<&ById>,
) -> Result<Identified, StartError> {
    // The static data of a process without a launcher were not moved before main. They are moved
    // now, while this thread is the only one.
    if by_id.is_some() {
        statics::move_now();
    }

    let mistakes = user_settings::apply_files();
    let settings = settings::of_this_process(providers);
    if let Ok(settings) = &settings
        && let Some(filter) = &settings.debug
    {
        rushmem_system::log::print(filter);
    }
    rushmem_system::log::debug!("start: gets its number from the launcher");

    let joined = join_job(settings.as_ref().ok(), by_id);
    // Reported only now, since a PE that has joined names itself and ends the whole job.
    let settings = settings.map_err(StartError::Invalid)?;
    let membership = ManuallyDrop::new(joined?);
    check_launch(&membership, by_id)?;

    child::recognize_from_now_on()?;
    if membership.is_launched() {
        process::buffer_by_line();
        leave::register_exit_handler();
    }

    if membership.pe() == 0 {
        for mistake in mistakes {
            warning!("{mistake}");
        }
        user_settings::print_warnings_and_info(&settings, providers, membership.is_launched());
    }
    Ok(Identified {
        build: Build::of(providers),
        algorithms: algorithm_table(&settings).map_err(StartError::Invalid)?,
        place: Place::new(Pe(membership.pe()), membership.nodes().clone(), &settings)?,
        membership,
        settings,
        thread_level,
    })
}

/// Gets the number of this PE. Without `settings`, which are then invalid, uses the defaults: only
/// a PE that has joined can report the error as one of its job.
fn join_job(
    settings: Option<&Settings>,
    by_id: Option<&ById>,
) -> Result<Membership, bootstrap::Error> {
    let options = JoinOptions {
        protocol: settings.map_or(Protocol::Any, |settings| settings.bootstrap),
        opens_libraries: !statics::own().of_static_program(),
        file: statics::remapped().and_then(|remapped| remapped.file()),
        meeting: by_id.map(ById::route),
        limits: settings.map(Settings::meeting_limits).unwrap_or_default(),
    };
    Membership::join(&options, |pe, aborter| {
        process::set_identity(Pe(pe), aborter);
    })
}

/// Returns an error if `oshrun` has started this process but the library cannot see that, or if the
/// unique id disagrees with the launcher.
fn check_launch(membership: &Membership, by_id: Option<&ById>) -> Result<(), StartError> {
    if !membership.is_launched() && statics::have_node_memory() {
        return Err(StartError::NoVariables);
    }
    match by_id {
        Some(by_id) => by_id.check_and_record(membership.pe(), membership.n_pes()),
        None => Ok(()),
    }
}

/// Returns the table by which the algorithms of collectives are chosen: the algorithms that
/// settings force, then the rows of a file, then the built-in rows.
///
/// # Errors
/// If the file cannot be read, or has an invalid row.
fn algorithm_table(settings: &Settings) -> Result<Table, String> {
    let mut table = Table::default();
    settings.force(&mut table);

    if let Some(file) = &settings.coll_tuning {
        let text = read_regular(file).map_err(|error| {
            format!(
                "SHMEM_COLL_TUNING: {file} cannot be read: {error}; every PE reads it, so each host needs a copy at that place"
            )
        })?;
        table
            .read(&text)
            .map_err(|mistake| format!("SHMEM_COLL_TUNING: {file}, {mistake}"))?;
    }

    table.complete();
    Ok(table)
}

/// Returns the text of a regular file. Another kind of file may block forever or have no end.
fn read_regular(file: &str) -> io::Result<String> {
    let file = File::options()
        .read(true)
        // Opening a FIFO without this flag waits for a writer.
        .custom_flags(libc::O_NONBLOCK)
        .open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }

    // One byte more than allowed is read, to see whether the file is larger.
    let mut text = String::new();
    let nbytes = file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if nbytes as u64 > MAX_FILE {
        return Err(io::Error::other(format!(
            "it is larger than {MAX_FILE} bytes"
        )));
    }
    Ok(text)
}

/// The place of a PE in its job.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) me: Pe,
    pub(super) n_pes: u32,
    pub(super) machines: NodeMap,
    /// The PEs that share memory: those of a machine, unless the environment splits it.
    pub(super) nodes: NodeMap,
    /// The number of this PE's machine.
    pub(super) machine: u32,
    /// The number of PEs on the machine.
    pub(super) n_local: u32,
    /// The number of this PE among them.
    pub(super) local: u32,
}

impl Place {
    /// Returns the place of PE `me` of a job on these machines.
    ///
    /// # Errors
    /// If the setting of virtual nodes does not fit the job.
    pub(super) fn new(me: Pe, machines: NodeMap, settings: &Settings) -> Result<Place, StartError> {
        let machine = machines.node_of(me.0);
        Ok(Place {
            me,
            n_pes: machines.n_pes(),
            nodes: nodes_of_job(settings, &machines)?,
            machine,
            n_local: machines.size(machine),
            local: machines.local_index(me.0),
            machines,
        })
    }

    /// Returns true if PE `pe` shares memory with this one.
    pub(super) fn is_on_node(&self, pe: u32) -> bool {
        self.nodes.node_of(pe) == self.nodes.node_of(self.me.0)
    }

    /// Returns the PEs of this machine.
    pub(super) fn on_machine(&self) -> impl Iterator<Item = u32> + '_ {
        self.machines.members(self.machine)
    }
}

/// Returns the nodes of the job: the PEs of each machine, unless a setting splits it.
fn nodes_of_job(settings: &Settings, machines: &NodeMap) -> Result<NodeMap, StartError> {
    let n_pes = machines.n_pes();
    if !settings.onnode {
        // A node for each PE, so that no two PEs share memory.
        let alone = (0..n_pes).map(|node| (node, 1));
        return Ok(NodeMap::from_runs(alone).expect("no node is empty"));
    }
    if settings.virtual_nodes == VirtualNodes::No {
        return Ok(machines.clone());
    }

    let Some(sizes) = settings.virtual_nodes.sizes(n_pes) else {
        return Err(StartError::VirtualNodes { n_pes });
    };
    if machines.n_nodes() > 1 {
        return Err(StartError::SeveralMachines);
    }
    Ok(NodeMap::from_runs((0..).zip(sizes)).expect("no node is empty"))
}
