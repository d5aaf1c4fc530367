//! The order in which a target carries out the requests of a stream, whatever order they arrive in.

use super::stream::{MAX_IN_FLIGHT, StreamPosition, has_reached};
use super::violation::Violation;

/// The order in which a request has arrived, relative to those that precede it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalOrder {
    /// It is carried out next.
    Next,
    /// It is [kept](CarriedOut::keep), since others precede it.
    Early,
}

/// The record of what a target has carried out of one stream. `T` is a request that arrived early.
#[derive(Debug)]
pub struct CarriedOut<T> {
    /// All requests up to this number are carried out.
    count: u32,
    /// Requests beyond it that are carried out, too.
    beyond: Vec<u32>,
    early: Vec<(StreamPosition, T)>,
}

impl<T> Default for CarriedOut<T> {
    fn default() -> CarriedOut<T> {
        CarriedOut { count: 0, beyond: Vec::new(), early: Vec::new() }
    }
}

impl<T> CarriedOut<T> {
    /// Returns a record that starts as if `count` requests had been carried out.
    #[cfg(test)]
    pub(super) fn start_at(count: u32) -> CarriedOut<T> {
        CarriedOut { count, ..CarriedOut::default() }
    }

    /// Returns the number of requests carried out without a gap.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns what to do with a request.
    ///
    /// # Errors
    /// If no origin sends it at this point.
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

    /// Records that a request is carried out.
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

    /// Removes and returns a kept request that may be carried out now.
    #[inline]
    pub fn take_ready(&mut self) -> Option<T> {
        let count = self.count;
        let next = self.early.iter().position(|(place, _)| has_reached(count, place.after))?;
        Some(self.early.swap_remove(next).1)
    }
}
