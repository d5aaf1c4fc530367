//! The checks of `SHMEM_CHECK` of an access: its bytes lie in one block of the heap, those of this
//! PE are accessible, and a signal is not one of the bytes that it announces. Of a collective the
//! caller is checked.

use super::event::{AccessKind, Action, Event, Observer, ObserverState};
use crate::call::fail;
use crate::job;
use crate::job::caller;
use crate::memory::address;
use rushmem_transport::{LocalAccess, LocalBuf};

/// The observer of `SHMEM_CHECK`. What is wrong ends the job with an error.
pub(crate) struct Checking;

impl Observer for Checking {
    fn begin(&self, event: &Event) -> ObserverState {
        let Event { call, pe, remote, local, .. } = *event;
        let access = match event.action {
            Action::Access(access) => access,
            Action::Collective(_) => {
                caller::check(call, job::require(call));
                return ObserverState::default();
            }
            _ => return ObserverState::default(),
        };
        if access.signal != 0 {
            address::require_place(call, "sig_addr", access.signal, 8, pe);
            if access.signal.wrapping_sub(remote.addr) < remote.nbytes {
                // Cause: `shmem_put_signal(x, source, 4, (uint64_t *)x, ...)`.
                fail!(
                    call,
                    "argument sig_addr: the signal at {:#x} lies in the {} bytes of dest at {:#x}; \
                     use a word that is not part of the data",
                    access.signal,
                    remote.nbytes,
                    remote.addr
                );
            }
        }
        use AccessKind::*;
        let accessed = match access.kind {
            Put | PutNbi | PutStrided | PutSignal | PutSignalNbi => Some(LocalAccess::Read),
            Get | GetNbi | GetStrided => Some(LocalAccess::Write),
            P | G | Amo | AmoFetch | AmoFetchNbi | Collective => None,
        };
        if let Some(accessed) = accessed {
            let base = std::ptr::without_provenance_mut(local.addr);
            address::check_local(call, accessed, LocalBuf { base, nbytes: local.span() });
        }
        if remote.nbytes > 0 {
            address::require_place(call, access.argument.name(), remote.addr, remote.span(), pe);
        }
        ObserverState::default()
    }

    fn end(&self, _: &Event, _: ObserverState) {}
}
