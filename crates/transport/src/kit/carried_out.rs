//! The order in which a target carries out the requests of a stream, whatever order they arrive in.

use super::stream::{MAX_IN_FLIGHT, StreamPosition, has_reached};
use super::violation::Violation;

/// The order in which a request has arrived, as to those that come before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalOrder {
    /// It is carried out next.
    Next,
    /// It is [kept](CarriedOut::keep): others come first.
    Early,
}

/// The record of what a target has carried out of one stream. `T` is a request that came early.
#[derive(Debug)]
pub struct CarriedOut<T> {
    /// All up to this one are carried out.
    count: u32,
    /// Some behind it are, too.
    beyond: Vec<u32>,
    early: Vec<(StreamPosition, T)>,
}

impl<T> Default for CarriedOut<T> {
    fn default() -> CarriedOut<T> {
        CarriedOut { count: 0, beyond: Vec::new(), early: Vec::new() }
    }
}

impl<T> CarriedOut<T> {
    /// As if `count` requests had been carried out before.
    #[cfg(test)]
    pub(super) fn start_at(count: u32) -> CarriedOut<T> {
        CarriedOut { count, ..CarriedOut::default() }
    }

    /// Returns how many are carried out, without a gap.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns what to do with a request.
    ///
    /// # Errors
    /// When no origin sends it at this point.
    #[inline]
    pub fn arrival_order(&self, place: StreamPosition) -> Result<ArrivalOrder, Violation> {
        let StreamPosition { number, after, .. } = place;
        let ahead = number.wrapping_sub(self.count);
        let is_new = (1..=MAX_IN_FLIGHT).contains(&ahead)
            && !self.beyond.contains(&number)
            && self.early.iter().all(|(other, _)| other.number != number);
        match is_new && has_reached(number.wrapping_sub(1), after) {
            false => Err(Violation::Number(number)),
            true if has_reached(self.count, after) => Ok(ArrivalOrder::Next),
            true => Ok(ArrivalOrder::Early),
        }
    }

    /// Keeps a request that is to be carried out later.
    pub fn keep(&mut self, place: StreamPosition, request: T) {
        self.early.push((place, request));
    }

    /// A request is carried out.
    #[inline]
    pub fn carried_out(&mut self, number: u32) {
        if number != self.count.wrapping_add(1) {
            return self.beyond.push(number);
        }
        self.count = number;
        while let Some(next) = self.beyond.iter().position(|n| *n == self.count.wrapping_add(1)) {
            self.beyond.swap_remove(next);
            self.count = self.count.wrapping_add(1);
        }
    }

    /// A request that was kept, whose turn has come.
    #[inline]
    pub fn take_early(&mut self) -> Option<T> {
        let count = self.count;
        let next = self.early.iter().position(|(place, _)| has_reached(count, place.after))?;
        Some(self.early.swap_remove(next).1)
    }
}
