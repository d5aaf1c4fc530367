//! Chooses the providers and domains of libfabric for a job: those that fit the requests of the
//! user and the job, best first. [`refusals`] says why others do not fit.

mod refusals;

use crate::fabric;
use crate::info::{FiInfo, InfoList};
use crate::quirks::{self, Quirk};
use crate::settings::{DOMAIN, FABRIC, PORT_RANGE, PROVIDER};
use libfabric_sys as fi;
use libfabric_sys::Libfabric;
use refusals::{nothing_fits, refusals};
use rushmem_system::devices::{self, NicName};
use rushmem_system::interfaces::{INTERFACES, PORTS, PortRange, Selection, interface_names};
use rushmem_system::setting;
use rushmem_transport::{Amos, Diagnosis, Found, Host, MANY_PAIRS, Open, Verdict};

/// The requests of the user, each empty if not set, and the properties of the job.
#[derive(Clone, Debug)]
struct Request {
    provider: String,
    domain: String,
    fabric: String,
    /// Whether the target's CPU or the network carries out atomic operations.
    amos: Amos,
    /// All PEs run on this machine.
    one_machine: bool,
    /// The interfaces that sockets may use; `None` stands for any.
    interfaces: Option<AllowedInterfaces>,
    /// The NIC that this PE should prefer.
    near: Option<NicName>,
    /// The number of pairs of PEs that the busiest node would connect.
    pairs_of_node: u64,
}

/// The interfaces that sockets may use.
#[derive(Clone, Debug)]
struct AllowedInterfaces {
    names: Vec<String>,
    /// The user's list, for messages.
    list: String,
}

impl Request {
    /// Reads the requests of the user. Passes the range of ports on to libfabric in its own
    /// variables, since no field of `fi_info` has it.
    fn of(host: &dyn Host, amos: Amos, one_machine: bool) -> Result<Request, String> {
        let variable = |name| host.variable(name).unwrap_or_default();

        if let Some((first, last)) = PortRange::parse(host.variable(PORTS).as_deref())?.bounds() {
            setting::set_default(PORT_RANGE.0, &first.to_string());
            setting::set_default(PORT_RANGE.1, &last.to_string());
        }
        let interfaces = match Selection::parse(&variable(INTERFACES))? {
            Some(selection) => Some(AllowedInterfaces {
                names: interface_names(&selection)?,
                list: selection.text().to_owned(),
            }),
            None => None,
        };

        Ok(Request {
            provider: variable(PROVIDER),
            domain: variable(DOMAIN),
            fabric: variable(FABRIC),
            amos,
            one_machine,
            interfaces,
            near: host.nic(),
            pairs_of_node: host.pairs_of_node(),
        })
    }

    /// Returns what a provider must offer; with `delivery`, also completions that mean that data
    /// are in the target's memory.
    fn hints(&self, delivery: bool) -> FiInfo {
        let mut caps = fi::FI_MSG | fi::FI_RMA;
        if self.amos == Amos::Network {
            caps |= fi::FI_ATOMIC;
        }
        // On one machine, a provider that reaches no other one fits, too.
        if !self.one_machine {
            caps |= fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM;
        }

        FiInfo {
            provider: self.provider.clone(),
            domain: self.domain.clone(),
            fabric: self.fabric.clone(),
            caps,
            mode: fi::FI_CONTEXT | fi::FI_CONTEXT2,
            type_: fi::FI_EP_RDM,
            threading: fi::FI_THREAD_SAFE,
            // A thread that waits polls, and the service thread does while no thread waits: no
            // thread of the provider's own need compete with them.
            control_progress: fi::FI_PROGRESS_MANUAL,
            data_progress: fi::FI_PROGRESS_MANUAL,
            resource_mgmt: fi::FI_RM_ENABLED,
            mr_mode: fi::FI_MR_LOCAL
                | fi::FI_MR_VIRT_ADDR
                | fi::FI_MR_ALLOCATED
                | fi::FI_MR_PROV_KEY
                | fi::FI_MR_RAW
                | fi::FI_MR_ENDPOINT
                | fi::FI_MR_RMA_EVENT,
            delivery,
            ..FiInfo::default()
        }
    }

    /// Returns the reason why an entry that meets the hints is not used; `None` if it can be used.
    fn mismatch(&self, info: &FiInfo) -> Option<String> {
        // Some providers ignore the domain and the fabric in the hints.
        if !self.domain.is_empty() && self.domain != info.domain {
            return Some(format!(
                "its domain is {}, but {DOMAIN} is {}",
                info.domain, self.domain
            ));
        }
        if !self.fabric.is_empty() && self.fabric != info.fabric {
            return Some(format!(
                "its fabric is {}, but {FABRIC} is {}",
                info.fabric, self.fabric
            ));
        }

        if info.sockets
            && let Some(allowed) = &self.interfaces
            && !allowed.names.contains(&info.domain)
        {
            return Some(format!(
                "its interface is {}, but {INTERFACES} is {}",
                info.domain, allowed.list
            ));
        }

        if let Some(defect) = quirks::defect(&info.provider, self.amos) {
            return Some(defect);
        }

        // If this PE chooses the keys, each registration takes the next one, also that for a single
        // operation: shorter keys would be used up.
        if info.key_bytes < 4 {
            return Some("its keys have less than 4 bytes".to_owned());
        }
        None
    }

    /// Returns true if a node would connect too many pairs of PEs.
    fn avoids_connections(&self) -> bool {
        self.pairs_of_node > MANY_PAIRS
    }

    /// Sorts candidates. Providers that [scale](FiInfo::scales) come first if a node would connect
    /// too many pairs of PEs. Among the domains of a provider, loopback comes first if all PEs are
    /// on this machine, then the preferred NIC.
    fn sort<T>(&self, fitting: &mut [(T, FiInfo)]) {
        if self.avoids_connections() {
            self.sort_scaling_first(fitting);
        }
        if !self.one_machine && self.near.is_none() {
            return;
        }

        let providers: Vec<String> = fitting
            .iter()
            .map(|(_, info)| info.provider.clone())
            .collect();
        fitting.sort_by_key(|(_, info)| {
            // The providers stay in their order: only the domains of each are sorted.
            let rank = providers.iter().position(|name| *name == info.provider);
            (
                rank,
                self.one_machine && !info.loopback,
                !self.is_near(&info.domain),
            )
        });
    }

    /// Puts the providers that scale first, and logs it if another provider would be first.
    fn sort_scaling_first<T>(&self, fitting: &mut [(T, FiInfo)]) {
        let Some((_, info)) = fitting.first() else {
            return;
        };
        let before = info.provider.clone();

        fitting.sort_by_key(|(_, info)| !info.scales());

        let provider = &fitting[0].1.provider;
        if *provider != before {
            let n = self.pairs_of_node;
            rushmem_system::log::info!(
                "provider {provider} goes ahead of {before}, since a node would connect {n} pairs of PEs"
            );
        }
    }

    fn is_near(&self, domain: &str) -> bool {
        let near = self.near.as_ref();
        near.is_some_and(|nic| nic.name == domain || nic.interface.as_deref() == Some(domain))
    }
}

/// Returns the entries that fit a job, best first; only those of the provider that `args.part`
/// names, if it names one.
pub(crate) fn candidates(args: &Open) -> Result<Vec<(InfoList, FiInfo)>, String> {
    let request = Request::of(&*args.host, args.amos, args.one_machine)?;
    let mut fitting = some_fitting(fabric::library()?, &request)?;
    fitting.retain(|(_, info)| args.part.as_ref().is_none_or(|part| *part == info.provider));
    Ok(fitting)
}

/// Returns the version of libfabric, and whether a job on several machines would use an RDMA device
/// with it. Queries providers only if the kernel shows such devices.
pub(crate) fn found(host: &dyn Host) -> Result<Found, String> {
    let library = fabric::library()?;
    let version = library.version();
    let version = format!("libfabric {}.{}", version >> 16, version & 0xFFFF);
    let devices = devices::active();
    let fitting = if devices.is_empty() {
        Vec::new()
    } else {
        some_fitting(library, &Request::of(host, Amos::Software, false)?)?
    };

    let infos: Vec<FiInfo> = fitting.into_iter().map(|(_, info)| info).collect();
    Ok(device_of(&version, &infos, &devices))
}

/// Returns the diagnosis of each provider: those that fit in the order in which they are tried,
/// then the others. If `args.part` names a provider, opens it and returns its diagnosis alone, or
/// nothing if it does not fit; otherwise opens none.
pub(crate) fn diagnose(
    args: &Open,
    open: fn(&Open, InfoList, FiInfo) -> Result<(), String>,
) -> Vec<Diagnosis> {
    let library = match fabric::library() {
        Ok(library) => library,
        Err(why) => return vec![Diagnosis::new("libfabric", Verdict::Absent, why)],
    };
    let request = match Request::of(&*args.host, args.amos, args.one_machine) {
        Ok(request) => request,
        Err(why) => return vec![Diagnosis::new("libfabric", Verdict::Refused, why)],
    };

    let mut all: Vec<Diagnosis> = Vec::new();
    // A diagnosis has no error: where libfabric lists nothing, the refusals below say why.
    let fitting = fitting(library, &request).unwrap_or_default();
    let used = fitting.first().map(|(_, info)| info.provider.clone());
    for (list, info) in fitting {
        let name = info.provider.clone();
        let domain = info.domain.clone();
        if args.part.as_ref().is_some_and(|part| *part != name) {
            continue;
        }

        // A provider has one diagnosis, which names all of its domains that fit.
        let known = all
            .iter_mut()
            .find(|one| one.name == name && one.verdict == Verdict::Usable);
        if let Some(known) = known {
            known.reason += &format!(", {domain}");
            continue;
        }

        let reason = format!("{}; {domain}", properties(&info, &request));
        let remedy = if used.as_ref() == Some(&name) {
            upgrade(library.version(), &name)
        } else {
            None
        };
        let usable = Diagnosis {
            is_for_many_pairs: info.scales(),
            remedy,
            ..Diagnosis::new(name.clone(), Verdict::Usable, reason)
        };

        if args.part.is_some()
            && let Err(why) = open(args, list, info)
        {
            let why = format!("on {domain}, {why}");
            all.push(Diagnosis::new(name, Verdict::Refused, why).remedy(fabric::LOG));
        } else {
            all.push(usable);
        }
    }

    if args.part.is_none() {
        let fits: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
        all.extend(refusals(library, &request, &fits));
    }
    all
}

/// Returns what a user should know about a provider that fits.
fn properties(info: &FiInfo, request: &Request) -> String {
    let peers = if info.connects {
        "connects each pair of PEs".to_owned()
    } else if info.scales() && request.avoids_connections() {
        format!(
            "connectionless: preferred, since a node would connect {} pairs of PEs",
            request.pairs_of_node
        )
    } else {
        "connectionless".to_owned()
    };

    // Each block of a heap is one registration, so the heap is limited if few are allowed.
    if info.registrations > 0 && info.heap_in_blocks() {
        format!("{peers}, at most {} registrations", info.registrations)
    } else {
        peers
    }
}

/// Returns advice if a newer libfabric than this `version` is faster with a provider. With 2.5.1, a
/// barrier, a broadcast and a maximum reduction of 8 B of two PEs take 0.74 to 0.76 of the time
/// that they take with 1.17.
fn upgrade(version: u32, provider: &str) -> Option<String> {
    if provider != "tcp;ofi_rxm" || version >= 2 << 16 {
        return None;
    }
    let text =
        "with SHMEM_TRANSPORT=ofi, small collectives take a quarter less time with libfabric 2.x";
    Some(text.to_owned())
}

/// Returns the entries that fit, one for each domain of a provider, best first; there may be none.
fn fitting(
    library: &'static Libfabric,
    request: &Request,
) -> Result<Vec<(InfoList, FiInfo)>, String> {
    let mut fitting: Vec<(InfoList, FiInfo)> = Vec::new();
    // The first query finds the entries that have completions for the target's memory; the second
    // one adds only entries without them.
    for delivery in [true, false] {
        for entry in InfoList::of(library, &request.hints(delivery))?.iter() {
            let info = FiInfo::of(entry, delivery);
            let is_known = fitting
                .iter()
                .any(|(_, other)| other.provider == info.provider && other.domain == info.domain);
            if is_known || request.mismatch(&info).is_some() {
                continue;
            }

            // Without memory for a copy, the entry is left out.
            if let Some(entry) = InfoList::copy(library, entry) {
                fitting.push((entry, info));
            }
        }
    }

    request.sort(&mut fitting);
    Ok(fitting)
}

/// Returns the entries that fit, as [`fitting`].
///
/// # Errors
/// If nothing fits; the text says why.
fn some_fitting(
    library: &'static Libfabric,
    request: &Request,
) -> Result<Vec<(InfoList, FiInfo)>, String> {
    let fitting = fitting(library, request)?;
    if fitting.is_empty() {
        return Err(nothing_fits(library, request));
    }
    Ok(fitting)
}

/// Describes the first of `infos`, which a job would open, and says whether it is a NIC on a PCI
/// bus or one of the RDMA `devices`.
fn device_of(version: &str, infos: &[FiInfo], devices: &[String]) -> Found {
    let Some(first) = infos.first() else {
        return Found {
            rdma: false,
            hardware_amos: false,
            description: format!("{version}: no RDMA device"),
        };
    };

    // The domain of some providers is named after the device, that of others is not.
    let nic = first.nic.as_ref();
    let is_device = devices.contains(&first.domain)
        || nic.is_some_and(|nic| nic.on_pci || devices.contains(&nic.name));
    if !is_device {
        let mut others: Vec<&str> = infos.iter().map(|info| info.provider.as_str()).collect();
        others.dedup();
        let others = others.join(", ");
        return Found {
            rdma: false,
            hardware_amos: false,
            description: format!("{version}: no RDMA device for it; {others}"),
        };
    }

    Found {
        rdma: true,
        hardware_amos: first.has(Quirk::HardwareAmos),
        description: format!("{version}: {} on {}", first.provider, first.domain),
    }
}

#[cfg(test)]
mod tests;
