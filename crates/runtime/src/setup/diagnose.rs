//! What each provider says of this machine, for `shmem-info --doctor`.

use super::connect::OnThisMachine;
use crate::base::settings::Settings;
use crate::net::network::ProcessHost;
use rushmem_transport::{Amos, Diagnosis, Error, Open, Pe, Provider};
use std::sync::Arc;

/// A transport on this machine.
pub struct Diagnosed {
    /// Its name.
    pub name: &'static str,
    /// What was found, or why it is unavailable.
    pub found: Result<OnThisMachine, Error>,
    /// Its parts.
    pub parts: Vec<Diagnosis>,
}

/// Each transport on this machine, for a job of several.
pub fn diagnose(settings: &Settings, providers: &[Provider]) -> Vec<Diagnosed> {
    let with = Open {
        pe: Pe(0),
        n_pes: 2,
        secret: [0; 32],
        one_machine: false,
        oversubscribed: true,
        amos: settings.amos.unwrap_or(Amos::Software),
        host: Arc::new(ProcessHost::default()),
    };
    let found = super::transports(settings, providers);
    let parts = providers.iter().map(|provider| (provider.diagnose)(&with));
    let all = found.into_iter().zip(parts);
    all.map(|((name, found), parts)| Diagnosed { name, found, parts }).collect()
}
