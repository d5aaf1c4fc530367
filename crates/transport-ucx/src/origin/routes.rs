//! What was issued to each PE: a table that takes memory only for those to which something was.
#![forbid(unsafe_code)]

use crate::pending::Connection;
use crate::ucp::{Endpoint, UcpRequest};
use rushmem_transport::Pe;
use rushmem_transport::kit::answers::Asked;
use std::ops::{Index, IndexMut};
use std::rc::Rc;

/// What was issued to one PE, and by what endpoint.
#[derive(Default)]
pub(super) struct Route {
    pub(super) open: Option<Open>,
    /// It is among the touched, and among the owing.
    pub(super) touched: bool,
    pub(super) owing: bool,
    /// There were puts, or atomic operations of UCX's, since the last flush began.
    pub(super) dirty: bool,
    /// Small puts that were not sent so far.
    pub(super) held: Vec<u8>,
    /// A flush that has not ended.
    pub(super) flush: Option<UcpRequest>,
    /// Before the last fence there were puts that were not known to be complete.
    pub(super) put_before: bool,
    pub(super) asked: Asked,
}

pub(super) struct Open {
    pub(super) endpoint: Endpoint,
    pub(super) connection: Rc<Connection>,
}

/// A route for each PE, which is made when it is first changed.
pub(super) struct Routes {
    /// For each PE the place of its route. Zeros, which take no memory before they are written, lead to the first one.
    places: Vec<u32>,
    /// The first stays as new.
    made: Vec<(Pe, Route)>,
}

impl Routes {
    pub(super) fn new(n_pes: usize) -> Routes {
        Routes { places: vec![0; n_pes], made: vec![(Pe(u32::MAX), Route::default())] }
    }

    pub(super) fn n_pes(&self) -> usize {
        self.places.len()
    }

    /// The routes that were made.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Pe, &Route)> {
        self.made[1..].iter().map(|(pe, route)| (*pe, route))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Route> {
        self.made[1..].iter_mut().map(|(_, route)| route)
    }
}

impl Index<usize> for Routes {
    type Output = Route;

    #[inline]
    fn index(&self, pe: usize) -> &Route {
        &self.made[self.places[pe] as usize].1
    }
}

impl IndexMut<usize> for Routes {
    #[inline]
    fn index_mut(&mut self, pe: usize) -> &mut Route {
        if self.places[pe] == 0 {
            self.places[pe] = self.made.len() as u32;
            self.made.push((Pe(pe as u32), Route::default()));
        }
        &mut self.made[self.places[pe] as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_made_when_it_is_changed() {
        let mut routes = Routes::new(5);
        assert!(!routes[4].touched && routes.iter().next().is_none());
        routes[3].touched = true;
        routes[1].dirty = true;
        assert!(routes[3].touched && !routes[3].dirty && routes[1].dirty && !routes[0].dirty);
        assert!(routes.iter().map(|(pe, _)| pe.0).eq([3, 1]));
    }
}
