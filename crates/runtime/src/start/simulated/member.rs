//! A member of a simulated start: it takes the steps of a start by the functions with which a PE
//! takes them, and sends messages where a PE exchanges.

use super::world::{STEPS, Transport, World};
use crate::build::{Build, OtherBuild};
use crate::start::agree::{Agreement, require_equal};
use crate::start::connect::attempt::{StepResult, result_of_all};
use crate::start::connect::negotiation::{Findings, Negotiation};
use crate::start::connect::trial::{Next, Offer};
use crate::start::error::StartError;
use crate::start::exchange::{
    MemoryPlan, are_pages_reserved, decoded, have_one_plan, machine_has_opened,
    without_reservations,
};
use crate::start::identify::Place;
use crate::start::join::{facts, predefined_members};
use crate::start::record::StartupRecord;
use rushmem_bootstrap::Records;
use rushmem_collectives::choice::ChoiceFacts;
use rushmem_pe::job::members::Members;
use rushmem_system::codec::encode;
use rushmem_transport::{Amos, Pe};

/// The exchange for which a message is. All members are in the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Record,
    Pages,
    Findings,
    /// The parts of this provider.
    Parts(&'static str),
    /// A step of the attempt over a provider, a part, and with an executor of atomic operations.
    Step(&'static str, Option<String>, Amos, u32),
    /// The barrier.
    Meet,
}

/// What a member sends next.
pub(super) struct Message {
    pub(super) round: Round,
    pub(super) bytes: Vec<u8>,
}

/// What a member has computed once it is ready.
pub(super) struct Decisions {
    pub(super) place: Place,
    pub(super) plan: MemoryPlan,
    pub(super) agreement: Agreement,
    pub(super) cpus_per_pe: u32,
    pub(super) facts: ChoiceFacts,
    pub(super) predefined: [Members; 3],
    pub(super) uses_pages: bool,
    pub(super) transport: Option<Transport>,
}

/// A member of a start.
pub(super) struct Member<'w> {
    world: &'w World,
    place: Place,
    plan: MemoryPlan,
    uses_pages: bool,
    round: Round,
    records: Option<Records<StartupRecord>>,
    agreement: Option<Agreement>,
    negotiation: Option<Negotiation<'static>>,
    /// The transport over which all have taken all steps, its part and the executor.
    transport: Option<Transport>,
}

impl<'w> Member<'w> {
    /// Identifies member `me`. Returns it with the record that it sends.
    pub(super) fn identify(world: &'w World, me: u32) -> Result<(Member<'w>, Message), StartError> {
        let settings = world.settings(me);
        let place = Place::new(Pe(me), world.machines.clone(), settings)?;
        let thread_level = world.pes[me as usize].thread_level;
        let plan = MemoryPlan::of_pe(settings, place.n_pes, thread_level);

        let record = world.own_values(me).record(&place, settings, thread_level);
        let bytes = world.build_of(me).before(&encode(&record));
        let member = Member {
            world,
            place,
            plan,
            uses_pages: false,
            round: Round::Record,
            records: None,
            agreement: None,
            negotiation: None,
            transport: None,
        };
        Ok((
            member,
            Message {
                round: Round::Record,
                bytes,
            },
        ))
    }

    fn me(&self) -> u32 {
        self.place.me.0
    }

    /// Hears what all members have sent, this one among them.
    pub(super) fn hears(&mut self, records: Records) -> Result<Message, StartError> {
        match self.round.clone() {
            Round::Record => self.hears_records(records),
            Round::Pages => {
                self.uses_pages =
                    self.world.opens_pages(self.me()) && machine_has_opened(&self.place, &records);
                self.agrees()
            }
            Round::Findings => {
                let findings: Vec<Findings> = decoded(records)?.iter().cloned().collect();
                let providers = self.world.providers(self.me());
                self.negotiation = Some(Negotiation::new(providers, findings)?);
                self.tries()
            }
            Round::Parts(_) => {
                let offers: Vec<Vec<Offer>> = decoded(records)?.iter().cloned().collect();
                self.negotiation().listed(&offers)?;
                self.tries()
            }
            Round::Step(provider, part, amos, step) => {
                self.hears_step(&decoded(records)?, provider, part, amos, step)
            }
            Round::Meet => unreachable!("who has met all is ready"),
        }
    }

    /// Hears how a step of an attempt has ended on all members: the attempt goes on only if it has
    /// succeeded on each.
    fn hears_step(
        &mut self,
        results: &Records<StepResult>,
        provider: &'static str,
        part: Option<String>,
        amos: Amos,
        step: u32,
    ) -> Result<Message, StartError> {
        if let Err(why) = result_of_all(results) {
            self.negotiation().failed(why);
            return self.tries();
        }
        if step + 1 < STEPS {
            return Ok(self.takes_step(provider, part, amos, step + 1));
        }

        self.negotiation().chosen();
        self.transport = Some((provider, part, amos));
        Ok(self.sends(Round::Meet, Vec::new()))
    }

    fn hears_records(&mut self, records: Records) -> Result<Message, StartError> {
        let build: Build = self.world.build_of(self.me());
        let records = build.without(records).map_err(|OtherBuild(pe)| match pe {
            None => StartError::ChangedRecords,
            Some(pe) => StartError::Builds {
                pe,
                first: "one".to_owned(),
                other: "another".to_owned(),
            },
        })?;
        let records = decoded(records)?;

        if !have_one_plan(&records) {
            self.plan = MemoryPlan::new(self.world.settings(self.me()), self.place.n_pes, 1);
            self.records = Some(without_reservations(records));
            return self.agrees();
        }

        let exchanges_pages = are_pages_reserved(&records);
        self.records = Some(records);
        if exchanges_pages {
            let opens = self.world.opens_pages(self.me());
            return Ok(self.sends(Round::Pages, vec![u8::from(opens)]));
        }
        self.agrees()
    }

    /// Compares the records, maps its memory, and finds out whether it needs a transport.
    fn agrees(&mut self) -> Result<Message, StartError> {
        let records = self.records.as_ref().expect("it has them");
        require_equal(self.place.me, records)?;
        let agreement = Agreement::of(&self.place.machines, &self.place.nodes, records)?;

        if self.plan.layout.is_none() || !self.world.can_map(self.me()) {
            return Err(StartError::Memory {
                nbytes: self.world.settings(self.me()).symmetric_size,
                n_local: self.place.n_local,
                why: rushmem_heap::Error::TooLarge,
            });
        }

        let needs_transport = agreement.needs_transport;
        self.agreement = Some(agreement);
        if needs_transport {
            let findings = self.world.findings(self.me());
            return Ok(self.sends(Round::Findings, encode(&findings)));
        }
        Ok(self.sends(Round::Meet, Vec::new()))
    }

    /// Does what the negotiation asks of all members.
    fn tries(&mut self) -> Result<Message, StartError> {
        match self.negotiation().next()? {
            Next::List(provider, executors) => {
                let own = self.world.offers(self.me(), provider.name, &executors);
                Ok(self.sends(Round::Parts(provider.name), encode(&own)))
            }
            Next::Attempt(route, executor) => {
                Ok(self.takes_step(route.provider.name, route.part, executor.amos, 0))
            }
        }
    }

    fn takes_step(
        &mut self,
        provider: &'static str,
        part: Option<String>,
        amos: Amos,
        step: u32,
    ) -> Message {
        let result = self
            .world
            .step(self.me(), provider, part.as_deref(), amos, step);
        self.sends(Round::Step(provider, part, amos, step), encode(&result))
    }

    fn sends(&mut self, round: Round, bytes: Vec<u8>) -> Message {
        self.round = round.clone();
        Message { round, bytes }
    }

    fn negotiation(&mut self) -> &mut Negotiation<'static> {
        self.negotiation.as_mut().expect("it has begun")
    }

    /// Returns what the member has computed, once it has met all.
    pub(super) fn decisions(self) -> Decisions {
        let agreement = self.agreement.expect("it has agreed");
        let place = self.place;
        if let Some((provider, ..)) = &self.transport {
            let negotiation = self.negotiation.expect("it has begun");
            assert_eq!(negotiation.winner().provider.name, *provider);
        }
        Decisions {
            plan: self.plan,
            cpus_per_pe: agreement.cpus[place.machine as usize].per_pe,
            facts: facts(&place.nodes, agreement.is_oversubscribed_somewhere),
            predefined: predefined_members(&place),
            uses_pages: self.uses_pages,
            transport: self.transport,
            agreement,
            place,
        }
    }
}
