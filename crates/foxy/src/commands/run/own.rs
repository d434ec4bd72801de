//! Runs a proxy in this process for the command of `foxy run`, with its own settings, store and
//! certificate authority.

use super::environment::ProxyAddress;
use super::tally::Tally;
use super::{certificate, further_authorities, hosts, in_environment};
use crate::authority_folder;
use crate::failure::Failure;
use crate::serve::listeners::ProxyListeners;
use crate::serve::{self, Extra, OpenStore};
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
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Validity of the certificate authority that foxy creates for one run. The key of this authority
/// is only in the memory of this process.
const AUTHORITY_VALIDITY: Duration = Duration::from_secs(90 * 86_400);

/// Largest number of stores of `foxy run`. Each running command needs a store of its own. Further
/// commands cache only in memory.
const MAX_STORES: usize = 8;

/// Time for which open requests may continue after the command has ended. It is short, because
/// their clients were processes of this command.
const STOP_AFTER: Duration = Duration::from_millis(200);

/// Runs the command with its own proxy, and prints the summary at its end.
pub fn run(matches: &ArgMatches, machine: &Machine, command: &[OsString]) -> Result<(), Failure> {
    let (settings, locked) = settings(matches, machine)?;
    let RunAuthority { authority, pem, hosts } = RunAuthority::open(matches)?;
    let tally = Arc::new(Tally::default());
    let extra = Extra {
        sink: Some(Arc::clone(&tally) as Arc<dyn AccessSink>),
        interception: Some(serve::interception(authority, &hosts)?),
        locked: locked.into_iter().collect(),
        ..Extra::default()
    };
    let running = serve::open(&settings, ProxyListeners::loopback(), extra)?;
    for OpenStore { folder, size, .. } in running.new_stores() {
        let folder = folder.display();
        let text =
            format!("foxy: stores downloads in {folder}, up to {size} (--size changes the limit)");
        terminal::report(Level::Warning, &text);
    }
    for parent in &running.parents {
        terminal::report(Level::Warning, &format!("foxy: uses the parent proxy {parent}"));
    }
    let (address, gauges) = (running.address(), running.gauges());
    let host = address.ip().to_string();
    let result = in_environment(
        command,
        ProxyAddress { host: &host, port: address.port() },
        Some(&pem),
        &further_authorities(matches),
    );
    running.close();
    if !matches!(result, Err(Failure::NotRun(..))) {
        terminal::report(Level::Warning, &tally.summary(&gauges));
    }
    result
}

/// Returns default settings with a store of `foxy run` and without an access log. Ignores the
/// configuration file and the environment variables, because they are for `foxy serve`. The second
/// value is the locked folder of the store. It is `None` if the arguments name a store or no store
/// is free.
fn settings(matches: &ArgMatches, machine: &Machine) -> Result<(Settings, Option<Root>), Failure> {
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
    let usual = settings.disk.store == [StoreChoice::plain(folder.clone())];
    if !usual {
        return Ok((settings, None));
    }
    let locked = free_store(&folder)?;
    settings.disk.store =
        locked.iter().map(|root| StoreChoice::plain(root.path().to_owned())).collect();
    if locked.is_none() {
        let text = format!(
            "foxy: {MAX_STORES} other commands use {} and its further stores; this command stores \
             downloads only in memory (--store FOLDER gives it a store)",
            folder.display()
        );
        terminal::report(Level::Warning, &text);
    }
    Ok((settings, locked))
}

/// Locks the first store that no other command uses, so that consecutive commands share a store.
/// Returns `None` if all [`MAX_STORES`] stores are in use.
fn free_store(first: &Path) -> Result<Option<Root>, Failure> {
    for number in 1..=MAX_STORES {
        match Root::open(&numbered(first, number)) {
            Ok(root) => return Ok(Some(root)),
            Err(RootError::InUse(_)) => {}
            Err(error) => return Err(Failure::Unusable(error.to_string())),
        }
    }
    Ok(None)
}

/// Returns the folder of store `number`, counted from 1: `foxy-run`, `foxy-run-2` and so on.
fn numbered(first: &Path, number: usize) -> PathBuf {
    let mut name = first.as_os_str().to_owned();
    if number > 1 {
        name.push(format!("-{number}"));
    }
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
