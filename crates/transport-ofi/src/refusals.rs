//! Why providers of libfabric do not fit a job: all of them for users, and one message when a start
//! fails.

use crate::choice::{self, InfoList};
use crate::facts::InfoFacts;
use crate::hints::Hints;
use crate::relaxations;
use crate::settings::{DOMAIN, FABRIC, PROVIDER};
use crate::wish::Wish;
use libfabric_sys::Libfabric;
use rushmem_transport::{Amos, Diagnosis, Verdict};

/// Providers of the list that are layers above others, or only log their calls.
const LAYERS: &str = "ofi_";

/// All that fits, best first.
///
/// # Errors
/// When nothing fits; the text says why not, and what to do.
pub(crate) fn candidates(
    library: &'static Libfabric,
    wish: &Wish,
) -> Result<Vec<(InfoList, InfoFacts)>, String> {
    match choice::fitting(library, wish)? {
        none if none.is_empty() => Err(nothing_fits(library, wish)),
        found => Ok(found),
    }
}

/// Why nothing fits, and what to do: for a start that fails.
fn nothing_fits(library: &'static Libfabric, wish: &Wish) -> String {
    let refused = all(library, wish, &[]);
    let said = |one: &Diagnosis| one.to_string();
    let whys: Vec<String> = match &wish.provider {
        Some(provider) => refused.iter().filter(|one| one.name == *provider).map(said).collect(),
        None => refused.iter().filter(|one| one.verdict == Verdict::Refused).map(said).collect(),
    };
    let names: Vec<&str> = refused
        .iter()
        .filter(|one| one.verdict != Verdict::Absent)
        .map(|one| one.name.as_str())
        .collect();
    let why = match (&wish.provider, whys.is_empty()) {
        (_, false) => whys.join("; "),
        (Some(provider), true) => match provider_of_fabric(library, provider) {
            Some(of) => format!(
                "{PROVIDER} is {provider}, which is a fabric of the provider {of}: set {FABRIC} instead"
            ),
            None => format!(
                "{PROVIDER} is {provider}, and there is no such provider: there are {}",
                names.join(", ")
            ),
        },
        (None, true) => "no provider of it has a device here".to_owned(),
    };
    let restrictions = [
        ("FI_PROVIDER", std::env::var("FI_PROVIDER").ok()),
        (PROVIDER, wish.provider.clone()),
        (DOMAIN, wish.domain.clone()),
        (FABRIC, wish.fabric.clone()),
        ("SHMEM_TCP_INTERFACE", Some(wish.interfaces.join(",")).filter(|names| !names.is_empty())),
        ("SHMEM_AMOS", (wish.amos == Amos::Network).then(|| wish.amos.to_string())),
    ];
    let set =
        restrictions.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    let set: Vec<String> = set.collect();
    let set = if set.is_empty() { String::new() } else { format!(" with {}", set.join(", ")) };
    format!(
        "libfabric has nothing that a job can use{set}: {why}; `shmem-info --doctor` explains all of its providers, \
         and `fi_info` lists them"
    )
}

/// The provider that has a fabric of this name.
fn provider_of_fabric(library: &'static Libfabric, name: &str) -> Option<String> {
    let all = choice::list(library, &Hints::none()).ok()??;
    let has = |offer: &Hints| offer.fabric.as_deref() == Some(name);
    all.iter().map(Hints::of_entry).find(has)?.provider
}

/// Each provider that is not among those that fit, with the reason.
pub(crate) fn all(library: &'static Libfabric, wish: &Wish, fits: &[String]) -> Vec<Diagnosis> {
    let mut names: Vec<String> = Vec::new();
    if let Ok(Some(all)) = choice::list(library, &Hints::none()) {
        for entry in all.iter() {
            let name = Hints::of_entry(entry).provider.unwrap_or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut found: Vec<Diagnosis> = names
        .iter()
        .filter(|name| !fits.contains(name))
        .map(|name| refusal(library, wish, name))
        .collect();
    let is_part = |part: &String| names.iter().any(|name| name.split(';').any(|of| of == part));
    let idle = choice::installed(library).into_iter();
    let idle = idle.filter(|name| !name.starts_with(LAYERS) && !is_part(name));
    found.extend(idle.map(|name| Diagnosis::new(name, Verdict::Absent, "no device of this kind")));
    found
}

/// Why a provider, which has something here, does not fit.
fn refusal(library: &'static Libfabric, wish: &Wish, name: &str) -> Diagnosis {
    if let Some(requested) = wish.provider.as_ref().filter(|requested| *requested != name) {
        return Diagnosis::new(name, Verdict::Unused, format!("{PROVIDER} is {requested}"));
    }
    let hints = Hints { provider: Some(name.to_owned()), ..Hints::of(wish, false) };
    let offered = |hints: &Hints| choice::list(library, hints).ok().flatten();
    let named = |facts: &InfoFacts| facts.provider == name;
    if let Some(list) = offered(&hints)
        && let Some(facts) = list.iter().map(|entry| choice::facts(entry, false)).find(named)
        && let Some(why) = choice::why_not(&facts, wish)
    {
        return Diagnosis::new(name, Verdict::Refused, why);
    }
    let offer = |hints: &Hints| {
        let offers = offered(hints)?;
        offers.iter().map(Hints::of_entry).find(|offer| offer.provider.as_deref() == Some(name))
    };
    let why = relaxations::search(&hints, offer);
    let why = why.unwrap_or_else(|| "refuses all that is required of it".to_owned());
    Diagnosis::new(name, Verdict::Refused, why)
}
