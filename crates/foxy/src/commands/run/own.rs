//! Runs a proxy in this process for the command of `foxy run`, with its own settings, store and
//! certificate authority.

use super::environment::ProxyAddress;
use super::sharing::{self, FoundOffer, Offer, OwnOffer};
use super::tally::Tally;
use super::{certificate, further_authorities, hosts, in_environment};
use crate::authority_folder;
use crate::failure::Failure;
use crate::serve::listeners::ProxyListeners;
use crate::serve::{self, Extra, OpenStore, Sibling};
use crate::settings::store_choice::StoreChoice;
use crate::settings::values::Output;
use crate::settings::{self, Settings};
use crate::terminal::{self, Level};
use clap::ArgMatches;
use foxy_base::{HostPattern, clock};
use foxy_cli::machine::Machine;
use foxy_device::{Root, RootError};
use foxy_proxy::intercept::{Authority, NewAuthority, make};
use foxy_proxy::request::access::AccessSink;
use foxy_proxy::upstream::Parent;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Validity of the certificate authority that foxy creates for one run. The key of this authority
/// is only in the memory of this process.
const AUTHORITY_VALIDITY: Duration = Duration::from_secs(90 * 86_400);

/// Largest number of stores of `foxy run`. Each running command that does not share the store of
/// another needs a store of its own. Further commands cache only in memory.
const MAX_STORES: usize = 8;

/// Time for which open requests may continue after the command has ended. It is short, because
/// their clients were processes of this command.
const STOP_AFTER: Duration = Duration::from_millis(200);

/// Time for which open requests may continue, if other commands share the store of the proxy.
const SHARED_STOP_AFTER: Duration = Duration::from_secs(5);

/// Longest wait for the offer (file that shares the store) of a process that has just locked the
/// store.
const OFFER_PATIENCE: Duration = Duration::from_secs(1);
const OFFER_POLL: Duration = Duration::from_millis(10);

/// Runs the command with its own proxy, and prints the summary at its end.
pub fn run(matches: &ArgMatches, machine: &Machine, command: &[OsString]) -> Result<(), Failure> {
    let (mut settings, usual) = settings(matches, machine)?;
    let RunAuthority { authority, pem, hosts } = RunAuthority::open(matches)?;
    let (listeners, address) = ProxyListeners::loopback()?;
    let own = Offer {
        process: std::process::id(),
        address,
        authority: pem.clone(),
        terms: terms(&settings, &hosts, matches),
    };
    let RunStore { locked, offered, shared } = match &usual {
        Some(folder) => RunStore::choose(folder, &own, &mut settings)?,
        None => RunStore::default(),
    };
    let sibling = shared.as_ref().map(|found| sibling(&found.offer)).transpose()?;
    let tally = Arc::new(Tally::new(sibling.as_ref().map(|sibling| sibling.proxy.authority())));
    let extra = Extra {
        sink: Some(Arc::clone(&tally) as Arc<dyn AccessSink>),
        interception: Some(serve::interception(authority, &hosts)?),
        locked: locked.into_iter().collect(),
        sibling,
        ..Extra::default()
    };
    let running = serve::open(&settings, listeners, extra)?;
    for OpenStore { folder, size, .. } in running.new_stores() {
        let folder = folder.display();
        let text =
            format!("foxy: stores downloads in {folder}, up to {size} (--size changes the limit)");
        terminal::report(Level::Warning, &text);
    }
    for parent in &running.parents {
        terminal::report(Level::Warning, &format!("foxy: uses the parent proxy {parent}"));
    }
    let gauges = running.gauges();
    if let Some(found) = shared {
        let text = format!("foxy: shares the store of the `foxy run` {}", found.offer.process);
        terminal::report(Level::Warning, &text);
        let gauges = gauges.clone();
        found.watch(move || gauges.end_sibling());
    }
    let host = address.ip().to_string();
    let result = in_environment(
        command,
        ProxyAddress { host: &host, port: address.port() },
        Some(&pem),
        &further_authorities(matches),
    );
    drop(offered);
    running.close();
    if !matches!(result, Err(Failure::NotRun(..))) {
        terminal::report(Level::Warning, &tally.summary(&gauges));
    }
    result
}

/// Returns the settings: flags, otherwise defaults, without an access log. Ignores the
/// configuration file and the environment variables, because they are for `foxy serve`. The second
/// value is the folder of the usual store. It is `None` if the arguments name a store.
fn settings(
    matches: &ArgMatches,
    machine: &Machine,
) -> Result<(Settings, Option<PathBuf>), Failure> {
    let folder = machine.cache_folder.with_file_name("foxy-run");
    let machine = Machine { config_files: Vec::new(), environment: Vec::new(), ..machine.clone() };
    let machine = Machine { cache_folder: folder.clone(), ..machine };
    let loaded = settings::load(None, Some(matches), &machine)
        .map_err(|complaints| Failure::Unusable(complaints.to_string()))?;
    let mut settings = loaded.settings;
    settings.operation.stop_after = STOP_AFTER;
    if !matches.contains_id("access-log") {
        settings.operation.access_log = Output::Off;
    }
    let is_usual = settings.disk.store == [StoreChoice::plain(folder.clone())];
    Ok((settings, is_usual.then_some(folder)))
}

/// Returns a hash of the settings, arguments and environment variables that decide about the
/// proxy's answers. Only runs with the same hash share a store.
fn terms(settings: &Settings, hosts: &[HostPattern], matches: &ArgMatches) -> u64 {
    const VARIABLES: [&str; 8] = [
        "http_proxy",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
        "no_proxy",
        "NO_PROXY",
        "SSL_CERT_FILE",
    ];
    let Settings { access, network, parents, .. } = settings;
    let chosen = (&access.allow_destination, &access.connect_ports, &network.origin_ca, parents);
    let authority = matches.get_one::<PathBuf>("ca");
    let environment = VARIABLES.map(std::env::var_os);
    let text =
        format!("{} {chosen:?} {authority:?} {hosts:?} {environment:?}", env!("CARGO_PKG_VERSION"));
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn sibling(offer: &Offer) -> Result<Sibling, Failure> {
    let url = format!("http://{}", offer.address);
    let proxy = url.parse::<Parent>();
    let proxy = proxy.map_err(|error| Failure::Failed(format!("{url}: {error}")))?;
    Ok(Sibling { proxy, authority: offer.authority.clone() })
}

#[derive(Default)]
struct RunStore {
    /// The locked folder of the store. `None` if the arguments name a store, or if this run caches
    /// only in memory.
    locked: Option<Root>,
    /// The offer (file that shares the store) of this run.
    offered: Option<OwnOffer>,
    /// The offer (file that shares the store) of the process whose store this run shares.
    shared: Option<FoundOffer>,
}

impl RunStore {
    /// Chooses the store of this run. It is the usual store if no process uses it. Otherwise, it is
    /// the store of a process that shares it, or else a new store.
    fn choose(usual: &Path, own: &Offer, settings: &mut Settings) -> Result<Self, Failure> {
        let until = clock::monotonic() + OFFER_PATIENCE;
        let chosen = loop {
            if let Some(root) = lock(usual)? {
                // Without the offer (file that shares the store), further runs have stores of their
                // own.
                let offered = sharing::offer(usual, own).ok();
                settings.operation.stop_after = SHARED_STOP_AFTER;
                break Self { locked: Some(root), offered, shared: None };
            }
            match sharing::find(usual) {
                Some(found) if found.offer.terms == own.terms => {
                    break Self { shared: Some(found), ..Self::default() };
                }
                None if clock::monotonic() < until => std::thread::sleep(OFFER_POLL),
                Some(_) | None => break Self { locked: free_store(usual)?, ..Self::default() },
            }
        };
        let folder = chosen.locked.iter().map(|root| StoreChoice::plain(root.path().to_owned()));
        settings.disk.store = folder.collect();
        if chosen.locked.is_none() && chosen.shared.is_none() {
            let text = format!(
                "foxy: {MAX_STORES} other commands use {} and its further stores; this command \
                 stores downloads only in memory (--store FOLDER gives it a store)",
                usual.display()
            );
            terminal::report(Level::Warning, &text);
        }
        Ok(chosen)
    }
}

/// Locks a store. Returns `None` if another command uses it.
fn lock(folder: &Path) -> Result<Option<Root>, Failure> {
    match Root::open(folder) {
        Ok(root) => Ok(Some(root)),
        Err(RootError::InUse(_)) => Ok(None),
        Err(error) => Err(Failure::Unusable(error.to_string())),
    }
}

/// Locks the first further store that no other command uses. Returns `None` if all [`MAX_STORES`]
/// stores are in use.
fn free_store(usual: &Path) -> Result<Option<Root>, Failure> {
    for number in 2..=MAX_STORES {
        if let Some(root) = lock(&numbered(usual, number))? {
            return Ok(Some(root));
        }
    }
    Ok(None)
}

/// Returns the folder of a further store, such as `foxy-run-2`.
fn numbered(usual: &Path, number: usize) -> PathBuf {
    let mut name = usual.as_os_str().to_owned();
    name.push(format!("-{number}"));
    name.into()
}

struct RunAuthority {
    authority: Authority,
    /// Certificate of the authority in PEM.
    pem: String,
    hosts: Vec<HostPattern>,
}

impl RunAuthority {
    /// Opens the authority of `--ca`, and intercepts the hosts for which it may sign. Without
    /// `--ca`, creates an authority for this run.
    fn open(matches: &ArgMatches) -> Result<Self, Failure> {
        let now = clock::wall();
        let further = matches.get_many::<HostPattern>("intercept").into_iter().flatten().cloned();
        if let Some(folder) = matches.get_one::<PathBuf>("ca") {
            let authority = authority_folder::open(folder, "--ca", now)?;
            let mut hosts = authority.facts().constraints.permitted().to_vec();
            if hosts.is_empty() {
                hosts = hosts::registries();
            }
            hosts.extend(further);
            return Ok(Self { authority, pem: certificate(folder)?, hosts });
        }
        let hosts: Vec<_> = hosts::registries().into_iter().chain(further).collect();
        let failed =
            |error| Failure::Failed(format!("cannot make a certificate authority: {error}"));
        let validity = AUTHORITY_VALIDITY;
        let new = NewAuthority { name: "foxy run", hosts: &hosts, now, validity };
        let made = make(&new).map_err(failed)?;
        let authority =
            Authority::read(made.certificate.as_bytes(), &made.key, now).map_err(failed)?;
        Ok(Self { authority, pem: made.certificate, hosts })
    }
}
