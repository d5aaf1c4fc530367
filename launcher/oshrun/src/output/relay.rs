//! What a child daemon sends of one stream, on its way to a destination.
//!
//! Lines are whole already, or come in pieces one after the other: the daemon has seen to that.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};
use tokio::time::timeout;

use super::lines::Owner;
use super::pen::{Pen, room_for};
use super::{HOLD, Tags};
use crate::tree::DownSender;
use crate::tree::wire::{Down, Printed, Which};

/// The stream of one child.
pub struct Relay {
    pub arrivals: mpsc::UnboundedReceiver<Printed>,
    pub pen: Arc<Mutex<Pen>>,
    pub stream: Which,
    pub tags: Arc<Tags>,
    /// Where to say that something was read.
    pub child: DownSender,
}

/// Passes on what arrives until the child has ended.
pub async fn relay(mut relay: Relay) {
    let mut turn: Option<OwnedMutexGuard<Pen>> = None;
    loop {
        let arrival = match turn {
            None => relay.arrivals.recv().await,
            Some(_) => match timeout(HOLD, relay.arrivals.recv()).await {
                Ok(arrival) => arrival,
                Err(_) => {
                    turn = None;
                    continue;
                }
            },
        };
        let Some(Printed { pe, stream, text, holds }) = arrival else {
            return;
        };
        let mut pen = match turn.take() {
            Some(pen) => pen,
            None => relay.pen.clone().lock_owned().await,
        };
        let nbytes = room_for(&text);
        let tag = relay.tags.of(pe);
        if !pen.write(Owner::of(pe, stream), &tag, text, holds).await {
            relay.child.send(&Down::Unread { stream: relay.stream });
            return;
        }
        relay.child.send(&Down::Read { stream, nbytes });
        turn = holds.then_some(pen);
    }
}
