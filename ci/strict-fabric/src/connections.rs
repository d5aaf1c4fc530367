//! The connections of an endpoint, of a profile that has such: an operation on a peer fails until
//! there is one.

use crate::domain::Domain;
use libfabric_sys as fi;
use std::sync::atomic::Ordering;

/// Posts that find a connection on its way.
const DELAY: u32 = 5;
/// Attempts of a process of which one is refused.
const REFUSED_ONE_IN: usize = 10;

#[derive(Clone, Copy, Debug, Default)]
enum Connection {
    #[default]
    None,
    /// It is there after this many posts.
    OnItsWay(u32),
    Open,
}

/// By the peers' indices.
#[derive(Default)]
pub(crate) struct Connections(Vec<Connection>);

impl Connections {
    /// Why an operation on a peer cannot be posted, as a number of libfabric's.
    pub(crate) fn refusal(&mut self, domain: &Domain, peer: usize) -> Option<i32> {
        let most = domain.profile.max_connections?;
        if self.0.len() <= peer {
            self.0.resize(peer + 1, Connection::None);
        }
        match &mut self.0[peer] {
            Connection::Open => return None,
            at @ Connection::OnItsWay(0) => {
                *at = Connection::Open;
                return None;
            }
            Connection::OnItsWay(left) => *left -= 1,
            at @ Connection::None => {
                let attempts = domain.attempts.fetch_add(1, Ordering::Relaxed);
                let is_refused = attempts % REFUSED_ONE_IN == REFUSED_ONE_IN - 1;
                // Those that were refused take no room.
                let has_room = attempts - attempts / REFUSED_ONE_IN < most;
                if is_refused || !has_room {
                    return Some(fi::FI_ECONNREFUSED);
                }
                *at = Connection::OnItsWay(DELAY);
            }
        }
        Some(fi::FI_EAGAIN)
    }
}
