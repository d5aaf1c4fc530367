//! Chooses the providers and domains of libfabric for a job: those that fit the requests of the
//! user and the job, best first. Says why others do not fit.

use crate::fabric;
use crate::info::{ANY_REGISTRATION, FiInfo, InfoList, installed};
use crate::quirks::{self, Quirk};
use crate::settings::{DOMAIN, FABRIC, PORT_RANGE, PROVIDER};
use libfabric_sys as fi;
use libfabric_sys::Libfabric;
use rushmem_system::devices;
use rushmem_system::devices::NicName;
use rushmem_system::interfaces::{INTERFACES, PORTS, PortRange, Selection, interface_names};
use rushmem_system::setting;
use rushmem_transport::{Amos, Diagnosis, Found, Host, MANY_PAIRS, Open, Verdict};

/// Start of the names of libfabric's utility providers, which are layers above others or log calls.
const LAYERS: &str = "ofi_";

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
    /// The interfaces that sockets may use, and the user's list of them; `None` stands for any.
    interfaces: Option<(Vec<String>, String)>,
    /// The NIC that this PE should prefer.
    near: Option<NicName>,
    /// The number of pairs of PEs that the busiest node would connect.
    pairs_of_node: u64,
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
            Some(selection) => Some((interface_names(&selection)?, selection.text().to_owned())),
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
        let names = [
            ("domain", &info.domain, DOMAIN, &self.domain),
            ("fabric", &info.fabric, FABRIC, &self.fabric),
        ];
        for (what, own, variable, named) in names {
            if !named.is_empty() && named != own {
                return Some(format!("its {what} is {own}, but {variable} is {named}"));
            }
        }
        if info.sockets
            && let Some((names, list)) = &self.interfaces
            && !names.contains(&info.domain)
        {
            return Some(format!(
                "its interface is {}, but {INTERFACES} is {list}",
                info.domain
            ));
        }
        let short = || (info.key_bytes < 4).then(|| "its keys have less than 4 bytes".to_owned());
        quirks::defect(&info.provider, self.amos).or_else(short)
    }

    /// Returns true if a node would connect too many pairs of PEs.
    fn avoids_connections(&self) -> bool {
        self.pairs_of_node > MANY_PAIRS
    }

    /// Sorts candidates. Providers that [scale](FiInfo::scales) come first if a node would connect
    /// too many pairs of PEs. Among the domains of a provider, loopback comes first if all PEs are
    /// on this machine, then the preferred NIC.
    fn sort<T>(&self, fitting: &mut [(T, FiInfo)]) {
        let first =
            |fitting: &[(T, FiInfo)]| fitting.first().map(|(_, info)| info.provider.clone());
        if self.avoids_connections() {
            let before = first(fitting);
            fitting.sort_by_key(|(_, info)| !info.scales());
            if let (Some(before), Some(provider)) = (before, first(fitting))
                && before != provider
            {
                let n = self.pairs_of_node;
                rushmem_system::log::info!(
                    "provider {provider} goes ahead of {before}, since a node would connect {n} pairs of PEs"
                );
            }
        }
        if !self.one_machine && self.near.is_none() {
            return;
        }
        let is_near = |domain: &str| {
            let near = self.near.as_ref();
            near.is_some_and(|nic| nic.name == domain || nic.interface.as_deref() == Some(domain))
        };
        let providers: Vec<String> = fitting
            .iter()
            .map(|(_, info)| info.provider.clone())
            .collect();
        fitting.sort_by_key(|(_, info)| {
            let rank = providers.iter().position(|name| *name == info.provider);
            (
                rank,
                self.one_machine && !info.loopback,
                !is_near(&info.domain),
            )
        });
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
    let fitting = match devices.is_empty() {
        true => Vec::new(),
        false => some_fitting(library, &Request::of(host, Amos::Software, false)?)?,
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
    let fitting = fitting(library, &request).unwrap_or_default();
    let used = fitting.first().map(|(_, info)| info.provider.clone());
    for (list, info) in fitting {
        let (name, domain) = (info.provider.clone(), info.domain.clone());
        if args.part.as_ref().is_some_and(|part| *part != name) {
            continue;
        }
        let known = |one: &&mut Diagnosis| one.name == name && one.verdict == Verdict::Usable;
        if let Some(known) = all.iter_mut().find(known) {
            known.reason += &format!(", {domain}");
            continue;
        }
        let peers = match (info.connects, info.scales() && request.avoids_connections()) {
            (true, _) => "connects each pair of PEs".to_owned(),
            (false, false) => "connectionless".to_owned(),
            (false, true) => format!(
                "connectionless: preferred, since a node would connect {} pairs of PEs",
                request.pairs_of_node
            ),
        };
        let registrations = match info.registrations {
            few @ 1.. if info.heap_in_blocks() => format!(", at most {few} registrations"),
            _ => String::new(),
        };
        let is_for_many_pairs = info.scales();
        let opened = if args.part.is_some() {
            open(args, list, info)
        } else {
            Ok(())
        };
        all.push(match opened {
            Ok(()) => {
                let reason = format!("{peers}{registrations}; {domain}");
                let is_used = used.as_ref() == Some(&name);
                let remedy = is_used.then(|| upgrade(library.version(), &name)).flatten();
                let usable = Diagnosis::new(name, Verdict::Usable, reason);
                Diagnosis {
                    is_for_many_pairs,
                    remedy,
                    ..usable
                }
            }
            Err(why) => Diagnosis::new(name, Verdict::Refused, format!("on {domain}, {why}"))
                .remedy(fabric::LOG),
        });
    }
    if args.part.is_none() {
        let fits: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
        all.extend(refusals(library, &request, &fits));
    }
    all
}

/// Returns advice if a newer libfabric than this `version` is faster with a provider. With 2.5.1, a
/// barrier, a broadcast and a maximum reduction of 8 B of two PEs take 0.74 to 0.76 of the time
/// that they take with 1.17.
fn upgrade(version: u32, provider: &str) -> Option<String> {
    let text =
        "with SHMEM_TRANSPORT=ofi, small collectives take a quarter less time with libfabric 2.x";
    (provider == "tcp;ofi_rxm" && version < 2 << 16).then(|| text.to_owned())
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
            if !is_known
                && request.mismatch(&info).is_none()
                && let Some(entry) = InfoList::copy(library, entry)
            {
                fitting.push((entry, info));
            }
        }
    }
    request.sort(&mut fitting);
    Ok(fitting)
}

/// Works as [`fitting`], but fails if nothing fits.
fn some_fitting(
    library: &'static Libfabric,
    request: &Request,
) -> Result<Vec<(InfoList, FiInfo)>, String> {
    match fitting(library, request)? {
        none if none.is_empty() => Err(nothing_fits(library, request)),
        some => Ok(some),
    }
}

/// Describes the first of `infos`, which a job would open, and says whether it is a NIC on a PCI
/// bus or one of the RDMA `devices`.
fn device_of(version: &str, infos: &[FiInfo], devices: &[String]) -> Found {
    let is_device = |name: &String| devices.contains(name);
    let has_device = |info: &&FiInfo| {
        let nic = info.nic.as_ref();
        is_device(&info.domain) || nic.is_some_and(|nic| nic.on_pci || is_device(&nic.name))
    };
    let device = infos.first().filter(has_device);
    let description = match (infos.first(), device) {
        (None, _) => format!("{version}: no RDMA device"),
        (
            _,
            Some(FiInfo {
                provider, domain, ..
            }),
        ) => format!("{version}: {provider} on {domain}"),
        (Some(_), None) => {
            let mut others: Vec<&str> = infos.iter().map(|info| info.provider.as_str()).collect();
            others.dedup();
            format!("{version}: no RDMA device for it; {}", others.join(", "))
        }
    };
    let hardware_amos = device.is_some_and(|info| info.has(Quirk::HardwareAmos));
    Found {
        rdma: device.is_some(),
        hardware_amos,
        description,
    }
}

/// Returns the reason why nothing fits, the variables that restrict the choice, and the commands
/// that show more.
fn nothing_fits(library: &'static Libfabric, request: &Request) -> String {
    let provider = &request.provider;
    let refused = refusals(library, request, &[]);
    let is_said = |one: &&Diagnosis| match provider.is_empty() {
        true => one.verdict == Verdict::Refused,
        false => one.name == *provider,
    };
    let reasons: Vec<String> = refused
        .iter()
        .filter(is_said)
        .map(Diagnosis::to_string)
        .collect();
    let why = if !reasons.is_empty() {
        reasons.join("; ")
    } else if provider.is_empty() {
        "no provider of it has a device here".to_owned()
    } else if let Some(owner) = provider_of_fabric(library, provider) {
        format!(
            "{PROVIDER} is {provider}, which is a fabric of the provider {owner}: set {FABRIC} instead"
        )
    } else {
        let here = refused.iter().filter(|one| one.verdict != Verdict::Absent);
        let names: Vec<&str> = here.map(|one| one.name.as_str()).collect();
        let names = names.join(", ");
        format!("{PROVIDER} is {provider}, and there is no such provider: there are {names}")
    };
    let amos = if request.amos == Amos::Network {
        request.amos.to_string()
    } else {
        String::new()
    };
    let restrictions = [
        (
            "FI_PROVIDER",
            std::env::var("FI_PROVIDER").unwrap_or_default(),
        ),
        (PROVIDER, provider.clone()),
        (DOMAIN, request.domain.clone()),
        (FABRIC, request.fabric.clone()),
        (
            INTERFACES,
            request
                .interfaces
                .as_ref()
                .map_or(String::new(), |(_, list)| list.clone()),
        ),
        ("SHMEM_AMOS", amos),
    ];
    let set = restrictions.iter().filter(|(_, value)| !value.is_empty());
    let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
    let set = if set.is_empty() {
        String::new()
    } else {
        format!(" with {}", set.join(", "))
    };
    format!(
        "libfabric has nothing that a job can use{set}: {why}; `shmem-info --doctor` explains all of its providers, \
         and `fi_info` lists them"
    )
}

/// Returns the provider that has a fabric of this name.
fn provider_of_fabric(library: &'static Libfabric, name: &str) -> Option<String> {
    let all = InfoList::of(library, &FiInfo::any()).ok()?;
    let found = all
        .iter()
        .map(|entry| FiInfo::of(entry, false))
        .find(|info| info.fabric == name);
    found.map(|info| info.provider)
}

/// Returns the diagnosis of each provider whose name is not in `fits`: those with a device or an
/// interface here, then the other installed ones, without [`LAYERS`].
fn refusals(library: &'static Libfabric, request: &Request, fits: &[String]) -> Vec<Diagnosis> {
    let mut names: Vec<String> = Vec::new();
    if let Ok(all) = InfoList::of(library, &FiInfo::any()) {
        for FiInfo { provider, .. } in all.iter().map(|entry| FiInfo::of(entry, false)) {
            if !names.contains(&provider) {
                names.push(provider);
            }
        }
    }
    let refused = names.iter().filter(|name| !fits.contains(name));
    let mut all: Vec<Diagnosis> = refused
        .map(|name| refusal(library, request, name))
        .collect();
    let is_part = |part: &String| {
        names
            .iter()
            .any(|name| name.split(';').any(|layer| layer == part))
    };
    let idle = installed(library).into_iter();
    let idle = idle.filter(|name| !name.starts_with(LAYERS) && !is_part(name));
    all.extend(idle.map(|name| Diagnosis::new(name, Verdict::Absent, "no device of this kind")));
    all
}

/// Returns the diagnosis of a provider that has a device or an interface here and does not fit.
fn refusal(library: &'static Libfabric, request: &Request, name: &str) -> Diagnosis {
    let requested = &request.provider;
    if !requested.is_empty() && requested != name {
        return Diagnosis::new(name, Verdict::Unused, format!("{PROVIDER} is {requested}"));
    }
    let hints = FiInfo {
        provider: name.to_owned(),
        ..request.hints(false)
    };
    let offer = |hints: &FiInfo| {
        let offers = InfoList::of(library, hints).ok()?;
        offers
            .iter()
            .map(|entry| FiInfo::of(entry, false))
            .find(|offer| offer.provider == name)
    };
    let why = offer(&hints).and_then(|info| request.mismatch(&info));
    let why = why.or_else(|| refused_hints(&hints, offer));
    let why = why.unwrap_or_else(|| "offers nothing, whatever is required of it".to_owned());
    Diagnosis::new(name, Verdict::Refused, why)
}

/// A requirement that can be dropped: its name, in the words of libfabric's manual where it has
/// any; the function that drops it from hints; and the function that names what the provider has
/// instead. The latter takes the hints and the entry that the provider offers without this
/// requirement, and may return an empty text.
type Relaxation = (
    &'static str,
    fn(&mut FiInfo),
    fn(&FiInfo, &FiInfo) -> String,
);

/// All requirements that can be dropped, in the order in which they are named.
const RELAXATIONS: &[Relaxation] = &[
    (
        "FI_EP_RDM (reliable datagrams)",
        |hints| hints.type_ = fi::FI_EP_UNSPEC,
        |_, offer| named(ENDPOINTS, offer.type_),
    ),
    (
        "FI_REMOTE_COMM (peers on other machines)",
        |hints| hints.caps &= !(fi::FI_LOCAL_COMM | fi::FI_REMOTE_COMM),
        nothing,
    ),
    (
        "FI_RMA (remote memory access)",
        |hints| hints.caps &= !fi::FI_RMA,
        nothing,
    ),
    (
        "FI_ATOMIC (atomic operations, for SHMEM_AMOS=network)",
        |hints| hints.caps &= !fi::FI_ATOMIC,
        nothing,
    ),
    (
        "FI_MSG (messages)",
        |hints| hints.caps &= !fi::FI_MSG,
        nothing,
    ),
    (
        "FI_THREAD_SAFE",
        |hints| hints.threading = fi::FI_THREAD_UNSPEC,
        |_, offer| named(THREADING, offer.threading),
    ),
    (
        "FI_PROGRESS_MANUAL of control operations",
        |hints| hints.control_progress = fi::FI_PROGRESS_UNSPEC,
        |_, offer| named(PROGRESS, offer.control_progress),
    ),
    (
        "FI_PROGRESS_MANUAL of data transfers",
        |hints| hints.data_progress = fi::FI_PROGRESS_UNSPEC,
        |_, offer| named(PROGRESS, offer.data_progress),
    ),
    (
        "FI_RM_ENABLED (queues that do not overrun)",
        |hints| hints.resource_mgmt = fi::FI_RM_UNSPEC,
        |_, offer| named(RESOURCES, offer.resource_mgmt),
    ),
    (
        "registration as Rushmem knows it",
        |hints| hints.mr_mode = ANY_REGISTRATION,
        |hints, offer| flags(REGISTRATION, offer.mr_mode & !hints.mr_mode),
    ),
    (
        "contexts as the only mode",
        |hints| hints.mode = u64::MAX,
        |hints, offer| flags(MODES, offer.mode & !hints.mode),
    ),
    (
        "the domain of SHMEM_OFI_DOMAIN",
        |hints| hints.domain.clear(),
        |_, offer| offer.domain.clone(),
    ),
    (
        "the fabric of SHMEM_OFI_FABRIC",
        |hints| hints.fabric.clear(),
        |_, offer| offer.fabric.clone(),
    ),
];

const ENDPOINTS: &[(&str, u32)] = &[
    ("FI_EP_MSG", fi::FI_EP_MSG),
    ("FI_EP_DGRAM", fi::FI_EP_DGRAM),
    ("FI_EP_RDM", fi::FI_EP_RDM),
];
const THREADING: &[(&str, u32)] = &[
    ("FI_THREAD_FID", fi::FI_THREAD_FID),
    ("FI_THREAD_DOMAIN", fi::FI_THREAD_DOMAIN),
    ("FI_THREAD_COMPLETION", fi::FI_THREAD_COMPLETION),
    ("FI_THREAD_ENDPOINT", fi::FI_THREAD_ENDPOINT),
];
const PROGRESS: &[(&str, u32)] = &[
    ("FI_PROGRESS_AUTO", fi::FI_PROGRESS_AUTO),
    ("FI_PROGRESS_MANUAL", fi::FI_PROGRESS_MANUAL),
];
const RESOURCES: &[(&str, u32)] = &[("FI_RM_DISABLED", fi::FI_RM_DISABLED)];
const REGISTRATION: &[(&str, u64)] = &[
    ("FI_MR_MMU_NOTIFY", fi::FI_MR_MMU_NOTIFY),
    ("FI_MR_HMEM", fi::FI_MR_HMEM),
    ("FI_MR_COLLECTIVE", fi::FI_MR_COLLECTIVE),
];
const MODES: &[(&str, u64)] = &[
    ("FI_MSG_PREFIX", fi::FI_MSG_PREFIX),
    ("FI_ASYNC_IOV", fi::FI_ASYNC_IOV),
    ("FI_RX_CQ_DATA", fi::FI_RX_CQ_DATA),
    ("FI_LOCAL_MR", fi::FI_LOCAL_MR),
    ("FI_NOTIFY_FLAGS_ONLY", fi::FI_NOTIFY_FLAGS_ONLY),
    ("FI_RESTRICTED_COMP", fi::FI_RESTRICTED_COMP),
    ("FI_BUFFERED_RECV", fi::FI_BUFFERED_RECV),
];

/// Returns an empty text, for a requirement without alternatives.
fn nothing(_: &FiInfo, _: &FiInfo) -> String {
    String::new()
}

fn named(names: &[(&str, u32)], value: u32) -> String {
    let known = names.iter().find(|(_, known)| *known == value);
    known.map_or(String::new(), |(name, _)| (*name).to_owned())
}

fn flags(names: &[(&str, u64)], value: u64) -> String {
    let set = names.iter().filter(|(_, flag)| value & flag != 0);
    set.map(|(name, _)| *name).collect::<Vec<_>>().join(" and ")
}

/// Returns the reason why a provider refuses `hints`, which libfabric does not report: a smallest
/// set of requirements without which it makes an offer. `offer` queries the provider with other
/// hints. Returns `None` if it offers nothing even without all [`RELAXATIONS`].
fn refused_hints(hints: &FiInfo, offer: impl Fn(&FiInfo) -> Option<FiInfo>) -> Option<String> {
    let without = |dropped: &[&Relaxation]| {
        let mut left = hints.clone();
        dropped.iter().for_each(|(_, drop, _)| drop(&mut left));
        left
    };
    // Requirements that `hints` does not contain cannot be the reason.
    let mut dropped: Vec<&Relaxation> = RELAXATIONS
        .iter()
        .filter(|one| without(&[one]) != *hints)
        .collect();
    let mut offered = offer(&without(&dropped))?;
    // If the provider still makes an offer with a requirement put back, this one is not the reason.
    for i in (0..dropped.len()).rev() {
        let mut fewer = dropped.clone();
        fewer.remove(i);
        if let Some(offer) = offer(&without(&fewer)) {
            (dropped, offered) = (fewer, offer);
        }
    }
    let reasons = dropped
        .iter()
        .map(|(name, _, instead)| match instead(hints, &offered) {
            none if none.is_empty() => (*name).to_owned(),
            instead => format!("{name}: with {instead} it would do"),
        });
    Some(format!(
        "refuses {}",
        reasons.collect::<Vec<_>>().join("; and ")
    ))
}

#[cfg(test)]
mod tests;
