//! Opens the sockets of this PE.

use crate::addresses::{Address, OwnAddresses};
use crate::service::Service;
use crate::settings::{DESCRIPTORS, Tuning};
use crate::shared::SharedState;
use rushmem_system::interfaces::{PORTS, PortRange};
use rushmem_system::lock::lock;
use rushmem_transport::engine::WireLimit;
use rushmem_transport::engine::message::MAX_ORIGINS;
use rushmem_transport::{Caps, Error, NetworkTransport, Open, OpenedNetwork, Transport};
use std::io;
use std::net::SocketAddr;

/// Opens the transport with these limits.
///
/// # Errors
/// [`Error::Unavailable`] if a variable is invalid, no address can be listened on, or the kernel
/// refuses a socket or a timer.
pub fn open(open: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    DESCRIPTORS.raise_limit(open.n_pes);
    let ips = OwnAddresses::of(open)?.ips;
    let ports =
        PortRange::parse(open.host.variable(PORTS).as_deref()).map_err(Error::Unavailable)?;

    let refused = |error: io::Error| {
        let why = DESCRIPTORS.explain(&error);
        Error::Unavailable(format!("the kernel refused what a socket needs: {why}"))
    };

    let mut listeners = Vec::new();
    let mut failed = None;
    let mut sockets: Vec<SocketAddr> = Vec::new();
    for ip in &ips {
        // An address may have disappeared since it was listed. One that works is enough.
        match ports.listen(*ip) {
            Ok(listener) => {
                listener.set_nonblocking(true).map_err(refused)?;
                sockets.push(listener.local_addr().map_err(refused)?);
                listeners.push(listener);
            }
            Err(error) => failed = Some(error),
        }
    }

    if listeners.is_empty()
        && let Some(error) = failed
    {
        let why = DESCRIPTORS.explain(&error);
        return Err(Error::Unavailable(format!(
            "no socket can listen on any of {ips:?}: {why}"
        )));
    }

    rushmem_system::log::debug!("listens on {sockets:?}");
    let service = Service::new(listeners, &tuning);
    let network = SharedState::new(open, tuning, service).map_err(refused)?;
    let unmuted = lock(&network.service).unmute(&network.epoll);
    unmuted.map_err(|error| refused(error.into()))?;

    let transport = NetworkTransport::start(OpenedNetwork {
        name: "rushmem-tcp",
        network,
        address: Address { sockets }.encode(),
        caps: Caps {
            amos_compose_with_cpu: true,
            wakes_waits: true,
            ..Caps::default()
        },
        wire_limit: WireLimit {
            n_wires: MAX_ORIGINS as usize,
            set_by: "streams of requests",
        },
    })?;

    Ok(Box::new(transport))
}
