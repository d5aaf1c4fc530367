//! What each provider says of this machine, for `shmem-info --doctor`.

use super::connect::OnThisMachine;
use crate::base::settings::Settings;
use crate::memory::available;
use crate::net::network::ProcessHost;
use rushmem_transport::kit::heap_blocks::FIRST;
use rushmem_transport::kit::heap_probe::{self, RegisteredBlocks};
use rushmem_transport::thread::without_signals;
use rushmem_transport::{Amos, Diagnosis, Error, Open, Pe, Provider};
use std::sync::Arc;
use std::time::Duration;

/// A transport on this machine.
pub struct Diagnosed {
    /// Its name.
    pub name: &'static str,
    /// What was found, or why it is unavailable.
    pub found: Result<OnThisMachine, Error>,
    /// Its parts.
    pub parts: Vec<Diagnosis>,
    /// What it registers of a heap, if in blocks, or why it does not.
    pub registered: Option<Result<RegisteredBlocks, Error>>,
}

/// Each transport on this machine, for a job of several.
pub fn diagnose(settings: &Settings, providers: &[Provider]) -> Vec<Diagnosed> {
    let with = Open {
        pe: Pe(0),
        n_pes: 2,
        secret: [0; 32],
        one_machine: false,
        cpus_per_pe: 0,
        amos: settings.amos.unwrap_or(Amos::Software),
        host: Arc::new(ProcessHost::default()),
    };
    let found = super::transports(settings, providers);
    let all = found.into_iter().zip(providers);
    all.map(|((name, found), provider)| Diagnosed {
        name,
        parts: (provider.diagnose)(&with),
        registered: found.as_ref().ok().and_then(|_| registered(provider, &with)),
        found,
    })
    .collect()
}

/// What a network registers of a heap within a second, and of no more than half of the memory that
/// is available, since it may lock it.
fn registered(provider: &Provider, with: &Open) -> Option<Result<RegisteredBlocks, Error>> {
    let most = available::bytes().map_or(FIRST, |nbytes| nbytes as usize / 2);
    let transport = without_signals(|| (provider.open)(with)).ok()?;
    heap_probe::probe(transport, most, Duration::from_secs(1)).transpose()
}
