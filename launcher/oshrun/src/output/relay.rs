//! Forwards what a child daemon sends of one stream to a destination.
//!
//! The daemon sends whole lines, or the pieces of a long line one after the other.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};
use tokio::time::timeout;

use super::lines::{HOLD, Owner};
use super::sink::{Sink, room_for};
use super::tags::Tags;
use crate::tree::senders::DownSender;
use crate::tree::wire::{Down, Printed, Which};

/// The stream of one child.
pub struct Relay {
    pub arrivals: mpsc::UnboundedReceiver<Printed>,
    pub sink: Arc<Mutex<Sink>>,
    pub stream: Which,
    pub tags: Arc<Tags>,
    /// Where to report that something was read.
    pub child: DownSender,
}

/// Forwards what arrives until the child has ended.
pub async fn relay(mut relay: Relay) {
    let mut turn: Option<OwnedMutexGuard<Sink>> = None;
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
        let mut sink = match turn.take() {
            Some(sink) => sink,
            None => relay.sink.clone().lock_owned().await,
        };
        let nbytes = room_for(&text);
        let tag = relay.tags.of(pe);
        if !sink.write(Owner::of(pe, stream), &tag, text, holds).await {
            relay.child.send(&Down::Unread { stream: relay.stream });
            return;
        }
        relay.child.send(&Down::Read { stream, nbytes });
        turn = holds.then_some(sink);
    }
}
