//! Asks a provider what it finds on this machine, without a job, for `shmem-info`.

use super::connect::trial::executors;
use rushmem_communication::host::ProcessHost;
use rushmem_pe::memory::shortage;
use rushmem_pe::settings::Settings;
use rushmem_system::thread::apart;
use rushmem_transport::segments::heap_blocks::FIRST;
use rushmem_transport::segments::heap_probe::{self, RegisteredBlocks};
use rushmem_transport::{Amos, Diagnosis, Error, Found, Open, Pe, Provider};
use std::sync::Arc;
use std::time::Duration;

/// The state of a transport on this machine, for messages.
pub struct OnThisMachine {
    /// The hardware that the provider would use, and its description.
    pub found: Found,
    /// The executor of atomic operations in a job whose machines are all like this one, or why the
    /// requested one is not possible.
    pub amos: String,
}

/// Asks a provider whether its transport is available on this machine. Does not open the transport.
///
/// # Errors
/// The reason why it is not available.
pub fn on_this_machine(settings: &Settings, provider: &Provider) -> Result<OnThisMachine, Error> {
    let found = (provider.available)(&ProcessHost::default())?;
    let amos = match executors(settings.amos, provider, found.hardware_amos) {
        Ok(executors) => executors[0].describe(),
        Err(why) => why,
    };
    Ok(OnThisMachine { found, amos })
}

/// The findings of a provider.
pub struct Diagnosed {
    /// A diagnosis of each of its parts, such as a network interface or a provider of libfabric.
    pub parts: Vec<Diagnosis>,
    /// The blocks of a heap that it registers, or why it registers none. `None` if the provider has
    /// parts and none was selected, if it cannot be opened, or if it does not register heaps in
    /// blocks.
    pub registered: Option<Result<RegisteredBlocks, Error>>,
}

/// Asks a provider which of its parts a job on several machines could use here. Of the parts, opens
/// only `part`.
pub fn diagnose(settings: &Settings, provider: &Provider, part: Option<&str>) -> Diagnosed {
    let open = Open {
        pe: Pe(0),
        n_pes: 2,
        secret: [0; 32],
        one_machine: false,
        cpus_per_pe: 0,
        amos: settings.amos.unwrap_or(Amos::Software),
        part: part.map(str::to_owned),
        host: Arc::new(ProcessHost::default()),
    };
    let parts = (provider.diagnose)(&open);

    let mut registered = None;
    if provider.parts.is_none() || part.is_some() {
        registered = registered_blocks(provider, &open);
    }
    Diagnosed { parts, registered }
}

/// Returns the blocks of a heap that a network registers within a second; `None` if the transport
/// cannot be opened or does not register heaps in blocks. The blocks are at most half of the
/// available memory, since the network may lock them.
fn registered_blocks(provider: &Provider, open: &Open) -> Option<Result<RegisteredBlocks, Error>> {
    let max_nbytes = shortage::available().map_or(FIRST, |nbytes| nbytes as usize / 2);
    let transport = apart(|| (provider.open)(open)).ok()?.ok()?;
    heap_probe::probe(transport, max_nbytes, Duration::from_secs(1)).transpose()
}
