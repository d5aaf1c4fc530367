//! The third step of a start: the PE compares the records of all PEs. Values that must be equal end
//! the start if they are not; from the others, each PE computes what all PEs of the job compute
//! alike, such as the address of the heap, and the CPUs of each machine, whose number decides
//! whether a PE may spin.

use super::error::StartError;
use super::exchange::{Exchanged, MemoryPlan};
use super::identify::Identified;
use super::record::{Cpus, StartupRecord, common_heap_address, report_addresses};
use rushmem_bootstrap::{NodeMap, Records};
use rushmem_heap::{Reservation, ReservedPages};
use rushmem_transport::Pe;
use std::fmt::{self, Display, Formatter};

/// A PE that is compatible with all others.
pub(super) struct Compatible {
    pub(super) identified: Identified,
    pub(super) plan: MemoryPlan,
    /// The reserved range at the address that all PEs use for the heap, if there is one.
    pub(super) reserved: Option<Reservation>,
    pub(super) pages: Option<ReservedPages>,
    pub(super) agreement: Agreement,
    pub(super) records: Records<StartupRecord>,
}

impl Exchanged {
    /// Compares the records, and agrees on the address of the heap.
    ///
    /// # Errors
    /// If a value that must be equal differs between PEs.
    pub(super) fn agree(self) -> Result<Compatible, StartError> {
        rushmem_system::log::debug!("start: compares what the PEs have in common");
        let place = &self.identified.place;
        require_equal(place.me, &self.records)?;
        let agreement = Agreement::of(&place.machines, &place.nodes, &self.records)?;
        report_addresses(place.me, &self.records, agreement.heap_address);

        // The other reservations are released.
        let mut reserved = self.reserved.into_iter();
        let reserved = reserved.find(|one| Some(one.slice()) == agreement.heap_address);
        Ok(Compatible {
            identified: self.identified,
            plan: self.plan,
            reserved,
            pages: self.pages,
            agreement,
            records: self.records,
        })
    }
}

/// Returns an error if a value that must be equal differs between PE `me` and another one.
pub(super) fn require_equal(me: Pe, records: &Records<StartupRecord>) -> Result<(), StartError> {
    let own = &records[me.0];
    let me = me.0;

    let here = equal_settings(own);
    if let Some(pe) = records.position(|record| equal_settings(record) != here) {
        let there = equal_settings(&records[pe]);
        let differs = |i: &usize| here[*i] != there[*i];
        let i = (0..here.len()).find(differs).expect("one of them differs");
        return Err(StartError::Setting {
            name: here[i].0,
            here: here[i].1.to_string(),
            there: there[i].1.to_string(),
            pe,
        });
    }

    if let Some(pe) = records.position(|record| record.forced != own.forced) {
        return Err(StartError::Forced { pe, me });
    }
    if let Some(pe) = records.position(|record| record.tuned != own.tuned) {
        return Err(StartError::Tuned { pe, me });
    }
    if let Some(pe) = records.position(|record| record.statics != own.statics) {
        return Err(StartError::Program { pe, me });
    }
    Ok(())
}

/// Returns the settings that must be equal on all PEs.
fn equal_settings(record: &StartupRecord) -> [(&'static str, SettingValue<'_>); 7] {
    use SettingValue::{Bytes, IsOn, IsSet, Text};
    [
        ("SHMEM_SYMMETRIC_SIZE", Bytes(record.symmetric_size)),
        ("SHMEM_CHECK", Text(&record.check)),
        ("SHMEM_STATS", IsSet(record.is_counted)),
        ("SHMEM_TRACE", IsSet(record.is_traced)),
        ("SHMEM_HUGE_PAGES", Text(&record.huge_pages)),
        ("SHMEM_ONNODE", IsOn(record.is_onnode)),
        ("SHMEM_VIRTUAL_NODES", Text(&record.virtual_nodes)),
    ]
}

/// The value of a setting in a record.
#[derive(PartialEq)]
enum SettingValue<'a> {
    Bytes(u64),
    Text(&'a str),
    IsSet(bool),
    IsOn(bool),
}

impl Display for SettingValue<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Bytes(nbytes) => write!(f, "{nbytes} bytes"),
            SettingValue::Text(text) => f.write_str(text),
            SettingValue::IsSet(is_set) => f.write_str(if *is_set { "set" } else { "not set" }),
            SettingValue::IsOn(is_on) => f.write_str(if *is_on { "on" } else { "off" }),
        }
    }
}

/// What all PEs of a job compute alike: the function that makes it does not know on which PE it
/// runs. So the PEs may decide by it without communication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agreement {
    /// The address of the heap that all PEs can use; `None` if there is no common one.
    pub(super) heap_address: Option<usize>,
    /// True if the static data of some PE are not in shared memory although it shares a node with
    /// other PEs. These need a transport for the static data.
    pub(super) has_statics_apart: bool,
    /// True if some memory of a PE is not mapped on another one, so that the job has a transport.
    pub(super) needs_transport: bool,
    /// The CPUs of each machine.
    pub(super) cpus: Vec<MachineCpus>,
    /// True if PEs outnumber the usable CPUs on some machine.
    pub(super) is_oversubscribed_somewhere: bool,
    /// True if several threads of some PE may be in the library at once.
    pub(super) has_threads_somewhere: bool,
    /// True if all PEs run the same build of the program.
    pub(super) has_equal_constants: bool,
    /// True if all PEs reach each other over loopback.
    pub(super) is_on_one_stack: bool,
    /// A secret that only the PEs of this job know.
    pub(super) secret: [u8; 32],
}

impl Agreement {
    /// Computes the agreement of PEs that are on these machines and nodes.
    ///
    /// # Errors
    /// If PE 0 has sent no secret.
    pub(super) fn of(
        machines: &NodeMap,
        nodes: &NodeMap,
        records: &Records<StartupRecord>,
    ) -> Result<Agreement, StartError> {
        let first = &records[0];
        let has_statics_apart = has_statics_apart(nodes, records);
        let all_machines = 0..machines.n_nodes();
        let cpus: Vec<MachineCpus> = all_machines
            .map(|machine| MachineCpus::of(machines, machine, records))
            .collect();
        let others = |differ: fn(&StartupRecord, &StartupRecord) -> bool| {
            records.position(|record| differ(record, first)).is_some()
        };
        Ok(Agreement {
            heap_address: common_heap_address(records),
            has_statics_apart,
            needs_transport: nodes.n_nodes() > 1 || has_statics_apart,
            is_oversubscribed_somewhere: cpus.iter().any(|machine| machine.per_pe == 0),
            cpus,
            has_threads_somewhere: records.position(StartupRecord::has_threads).is_some(),
            has_equal_constants: !others(|one, first| one.constants != first.constants),
            is_on_one_stack: !others(|one, first| one.stack != first.stack),
            secret: first.secret.ok_or(StartError::SecretMissing)?,
        })
    }
}

/// The CPUs that the PEs of a machine may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MachineCpus {
    /// Their number, for all PEs together.
    pub(super) usable: usize,
    /// The number for each PE; 0 if PEs outnumber the CPUs.
    pub(super) per_pe: u32,
}

impl MachineCpus {
    fn of(machines: &NodeMap, machine: u32, records: &Records<StartupRecord>) -> MachineCpus {
        let usable = cpus_of_machine(machines.members(machine).map(|pe| &records[pe].cpus));
        let share = usable / machines.size(machine) as usize;
        MachineCpus {
            usable,
            per_pe: u32::try_from(share).unwrap_or(u32::MAX),
        }
    }
}

/// Returns the number of CPUs that the PEs of a machine may use together: those in the affinity of
/// any PE, each counted once. A quota that is below the affinity of a PE limits all PEs together.
pub(super) fn cpus_of_machine<'a>(pes: impl Iterator<Item = &'a Cpus>) -> usize {
    let mut all: Vec<u64> = Vec::new();
    let mut quota = usize::MAX;
    for cpus in pes {
        all.resize(all.len().max(cpus.mask.len()), 0);
        for (all, mask) in all.iter_mut().zip(&cpus.mask) {
            *all |= mask;
        }

        if cpus.at_once < count(&cpus.mask) || cpus.mask.is_empty() {
            quota = quota.min(cpus.at_once);
        }
    }

    let n_cpus = count(&all);
    if n_cpus == 0 {
        // The affinity of no PE could be read.
        quota
    } else {
        n_cpus.min(quota)
    }
}

fn count(mask: &[u64]) -> usize {
    mask.iter().map(|word| word.count_ones() as usize).sum()
}

fn has_statics_apart(nodes: &NodeMap, records: &Records<StartupRecord>) -> bool {
    (0..nodes.n_pes()).any(|pe| {
        let has_neighbors = nodes.size(nodes.node_of(pe)) > 1;
        has_neighbors && records[pe].statics_in_slot.is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::record::usable_cpus;

    fn cpus(at_once: usize, mask: u64) -> Cpus {
        Cpus {
            at_once,
            mask: vec![mask],
        }
    }

    #[test]
    fn bound_pes_add_up_and_quotas_do_not() {
        assert_eq!(cpus_of_machine([cpus(1, 0b01), cpus(1, 0b10)].iter()), 2);
        assert_eq!(cpus_of_machine([cpus(2, 0b11), cpus(2, 0b11)].iter()), 2);
        assert_eq!(cpus_of_machine([cpus(3, 0xff), cpus(3, 0xff)].iter()), 3);

        let without_affinity = Cpus {
            at_once: 4,
            mask: vec![],
        };
        assert_eq!(cpus_of_machine([without_affinity].iter()), 4);
    }

    #[test]
    fn this_process_may_use_some() {
        assert!(cpus_of_machine([usable_cpus()].iter()) >= 1);
    }
}
