//! Forwards one output stream of a child daemon to a destination.
//!
//! The daemon sends whole lines, or consecutive pieces of a long line.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};
use tokio::time::timeout;

use super::lines::MAX_PAUSE;
use super::sink::{Sink, room_for};
use super::tags::Tags;
use crate::daemons::messages::{DaemonOrder, Printed, StdStream};
use crate::daemons::queues::OrderSender;

/// A stream of a child.
pub struct Relay {
    pub arrivals: mpsc::UnboundedReceiver<Printed>,
    pub sink: Arc<Mutex<Sink>>,
    pub stream: StdStream,
    pub tags: Arc<Tags>,
    /// Receives reports of what was written.
    pub child: OrderSender,
}

/// Forwards text until the child has ended.
pub async fn relay(mut relay: Relay) {
    let mut held: Option<OwnedMutexGuard<Sink>> = None;
    loop {
        let arrival = match held {
            None => relay.arrivals.recv().await,
            Some(_) => match timeout(MAX_PAUSE, relay.arrivals.recv()).await {
                Ok(arrival) => arrival,
                Err(_) => {
                    held = None;
                    continue;
                }
            },
        };
        let Some(Printed { pe, stream, text, continues }) = arrival else {
            return;
        };
        let mut sink = match held.take() {
            Some(sink) => sink,
            None => relay.sink.clone().lock_owned().await,
        };
        let nbytes = room_for(&text);
        let tag = relay.tags.of(pe);
        if !sink.write(Some((pe, stream)), &tag, text, continues).await {
            relay.child.send(&DaemonOrder::OutputClosed { stream: relay.stream });
            return;
        }
        relay.child.send(&DaemonOrder::OutputConsumed { stream, nbytes });
        held = continues.then_some(sink);
    }
}
