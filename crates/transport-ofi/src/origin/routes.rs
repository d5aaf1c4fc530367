//! What an endpoint keeps of each PE that it has issued something to: a table that takes memory only for those.
//!
//! This file must never know what is issued.
#![forbid(unsafe_code)]

use rushmem_transport::Pe;
use rushmem_transport::kit::answers::Asked;

/// What was issued to one PE.
pub(super) struct Route {
    /// How many fences there were when something was last written to it.
    pub(super) followed: u32,
    pub(super) asked: Asked,
    /// It is among the owing.
    pub(super) is_owing: bool,
}

/// A route for each PE, which is made when it is first used.
pub(super) struct Routes {
    /// For each PE the place behind its route. Zeros, which take no memory before they are written, lead to none.
    places: Vec<u32>,
    made: Vec<Route>,
}

impl Routes {
    pub(super) fn new(n_pes: usize) -> Routes {
        Routes { places: vec![0; n_pes], made: Vec::new() }
    }

    /// The route of a PE, if it was made.
    #[inline]
    pub(super) fn get(&self, pe: Pe) -> Option<&Route> {
        let place = *self.places.get(pe.index())?;
        self.made.get((place as usize).wrapping_sub(1))
    }

    /// The route of a PE of the job, of whose requests so many are carried out if it is new.
    #[inline]
    pub(super) fn of(&mut self, pe: Pe, told: u32) -> &mut Route {
        let place = &mut self.places[pe.index()];
        if *place == 0 {
            self.made.push(Route { followed: 0, asked: Asked::after(told), is_owing: false });
            *place = self.made.len() as u32;
        }
        &mut self.made[*place as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_made_when_it_is_used() {
        let mut routes = Routes::new(5);
        assert!(routes.get(Pe(3)).is_none() && routes.get(Pe(7)).is_none());
        routes.of(Pe(3), 9).followed = 2;
        routes.of(Pe(1), 0).is_owing = true;
        assert_eq!(routes.of(Pe(3), 4).followed, 2);
        assert_eq!(routes.get(Pe(3)).map(|route| route.asked.unanswered(9)), Some(0), "as made");
        assert!(routes.get(Pe(1)).is_some_and(|route| route.is_owing && route.followed == 0));
        assert!(routes.get(Pe(0)).is_none());
    }
}
