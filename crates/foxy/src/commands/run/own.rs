//! A proxy for one command, in this process: its settings, its store, its certificate authority.

use super::tally::Tally;
use super::{certificate, further, hosts, in_environment};
use crate::authority_folder;
use crate::failure::Failure;
use crate::serve::{self, Extra};
use crate::settings::kind::Output;
use crate::settings::machine::Machine;
use crate::settings::store_choice::StoreChoice;
use crate::settings::{self, Settings};
use crate::terminal::{self, Level};
use clap::ArgMatches;
use foxy_base::clock;
use foxy_device::{Root, RootError};
use foxy_proxy::access::AccessSink;
use foxy_proxy::intercept::{Authority, HostPattern, NewAuthority, make};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long an authority is valid whose key ends with this process.
const VALIDITY: Duration = Duration::from_secs(90 * 86_400);

/// How long requests in progress may take when the command has ended; nobody waits for them any more.
const STOP_AFTER: Duration = Duration::from_millis(200);

/// Runs the command with a proxy of its own.
pub fn run(matches: &ArgMatches, machine: &Machine, command: &[OsString]) -> Result<(), Failure> {
    let settings = settings(matches, machine)?;
    let (authority, pem, hosts) = authority(matches)?;
    let tally = Arc::new(Tally::default());
    let extra = Extra {
        sink: Some(Arc::clone(&tally) as Arc<dyn AccessSink>),
        interception: Some(serve::interception_of(authority, &hosts)?),
    };
    let running = serve::open(&settings, None, extra)?;
    let (address, gauges) = (running.address(), running.gauges());
    let host = address.ip().to_string();
    let result = in_environment(command, (&host, address.port()), Some(&pem), &further(matches));
    running.close();
    if !matches!(result, Err(Failure::NotRun(..))) {
        terminal::report(Level::Warning, &tally.summary(&gauges));
    }
    result
}

/// The usual settings, but with a free port of this machine's alone, a store of its own, and nothing on standard output,
/// which is the command's. No configuration file is read: it is the one of `foxy serve`.
fn settings(matches: &ArgMatches, machine: &Machine) -> Result<Settings, Failure> {
    let folder = machine.cache_folder.with_file_name("foxy-run");
    let machine = Machine { cache_folder: folder.clone(), config_files: Vec::new(), ..machine.clone() };
    let loaded = settings::load(None, Some(matches), &machine)
        .map_err(|complaints| Failure::Unusable(complaints.to_string()))?;
    let mut settings = loaded.settings;
    settings.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    settings.admin = None;
    settings.stop_after = STOP_AFTER;
    if !matches.contains_id("access-log") {
        settings.access_log = Output::Off;
    }
    let usual = settings.store == [StoreChoice::plain(folder.clone())];
    if usual && matches!(Root::open(&folder), Err(RootError::InUse(_))) {
        let text = format!(
            "foxy: another `foxy run` uses {}; this one keeps what it fetches in memory only (--store FOLDER gives it one)",
            folder.display()
        );
        terminal::report(Level::Warning, &text);
        settings.store.clear();
    }
    Ok(settings)
}

/// Who vouches for which hosts: the authority of a folder for all that it may, or one made for this run.
fn authority(matches: &ArgMatches) -> Result<(Authority, String, Vec<HostPattern>), Failure> {
    let now = clock::wall();
    let further = matches.get_many::<HostPattern>("intercept").into_iter().flatten().cloned();
    if let Some(folder) = matches.get_one::<PathBuf>("ca") {
        let authority = authority_folder::open(folder, "--ca", now)?;
        let mut hosts = authority.facts().constraints.permitted().to_vec();
        if hosts.is_empty() {
            hosts = hosts::registries();
        }
        hosts.extend(further);
        return Ok((authority, certificate(folder)?, hosts));
    }
    let hosts: Vec<_> = hosts::registries().into_iter().chain(further).collect();
    let failed = |error| Failure::Failed(format!("no certificate authority: {error}"));
    let new = NewAuthority { name: "foxy run", hosts: &hosts, now, validity: VALIDITY };
    let made = make(&new).map_err(failed)?;
    let authority = Authority::read(made.certificate.as_bytes(), &made.key, now).map_err(failed)?;
    Ok((authority, made.certificate, hosts))
}
