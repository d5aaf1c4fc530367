//! Opens UCX for this PE.

use crate::amo_probe::probe;
use crate::service::Service;
use crate::settings::{DESCRIPTORS, LIMITS, MIN_DESCRIPTORS, OF_WORKER, Tuning, WORKERS};
use crate::shared::SharedState;
use crate::ucp::UcpResource;
use crate::{abort, connect, diagnosis};
use rushmem_system::host::host_name;
use rushmem_transport::engine::{NetworkPe, WireLimit};
use rushmem_transport::{Amos, Caps, Error, NetworkTransport, Open, OpenedNetwork, Transport};
use std::io;
use std::sync::Arc;

/// Opens the transport with these limits.
///
/// # Errors
/// [`Error::Unavailable`] if UCX cannot be opened or lacks what the job requires, or the kernel
/// lets this process have too few descriptors.
pub fn open(open: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    let opened = open_network(open, tuning).map_err(Error::Unavailable)?;
    Ok(Box::new(NetworkTransport::start(opened)?))
}

/// Opens UCX and the service worker.
fn open_network(open: &Open, tuning: Tuning) -> Result<OpenedNetwork<SharedState>, String> {
    DESCRIPTORS.require(open.n_pes, MIN_DESCRIPTORS)?;
    // The launcher learns of a PE that has ended long before this, and ends the job first. It
    // reports a silent host only later, after three fifths of the limit.
    abort::guard(open.pe, open.host.host_limit() / 2);
    let context = Arc::new(diagnosis::open(open.n_pes, &*open.host, open.one_machine)?);

    rushmem_system::log::debug!(
        copies = context.copies,
        notices_failures = context.notices_failures,
        "UCX may use {}",
        context
            .resources()
            .iter()
            .map(|UcpResource { transport, device }| format!("{transport}/{device}"))
            .collect::<Vec<_>>()
            .join(", ")
    );

    if open.amos == Amos::Network {
        probe(&context)
            .map_err(|why| format!("{why}. With SHMEM_AMOS=software the targets' CPUs do them"))?;
    }

    let refused = |error: io::Error| format!("the kernel refused a descriptor: {error}");
    let local = Arc::new(NetworkPe::new(open, host_name(), &LIMITS).map_err(refused)?);
    let service = Service::new(&context, Arc::clone(&local))?;
    let address = connect::encode_address(&service.worker.address()?);

    // Only connections over sockets take file descriptors.
    let max_workers = if context.copies {
        OF_WORKER.fitting(open.n_pes, tuning.max_workers)
    } else {
        tuning.max_workers
    };
    let caps = Caps {
        amos_compose_with_cpu: open.amos == Amos::Software,
        // UCX's sockets read /proc/net, and its peers read /proc/PID to find shared memory.
        // Neither can be read after the first thread has ended, and UCX aborts then.
        needs_first_thread: true,
        // Registration for a NIC locks memory: UCX uses on-demand paging only for memory that
        // is registered as non-blocking, which this crate does not do.
        locks_memory: !context.copies,
        heap_in_blocks: !context.copies || tuning.heap_in_blocks,
        // Nothing signals what a NIC writes.
        wakes_waits: context.copies,
    };

    let network = SharedState::new(open, tuning, local, context, service).map_err(refused)?;
    Ok(OpenedNetwork {
        name: "rushmem-ucx",
        network,
        address,
        caps,
        wire_limit: WireLimit {
            n_wires: max_workers,
            set_by: WORKERS,
        },
    })
}
