//! `foxy run -- CMD…`: runs one command with foxy as its proxy, so that what it downloads over
//! HTTPS comes from the cache the next time. The proxy lives as long as the command, in this
//! process, unless another is named.

mod child;
mod environment;
mod hosts;
mod java;
mod own;
mod tally;
mod trust;

use crate::authority_folder;
use crate::failure::Failure;
use crate::settings::flags;
use crate::terminal::{self, Level};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_cli::machine::Machine;
use foxy_proxy::intercept::HostPattern;
use std::ffi::OsString;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trust::Trusted;

/// How long a proxy that was named may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// The settings that are of use for one command.
const SETTINGS: &[&str] = &[
    "store",
    "size",
    "memory",
    "origin-ca",
    "allow-destination",
    "connect-ports",
    "access-log",
    "access-log-format",
];

/// Its arguments.
pub fn command() -> Command {
    let command = Command::new("run")
        .about(
            "Run a command whose downloads are cached, HTTPS too: foxy run -- pip install \
        requests",
        )
        .long_about(
            "Run a command whose downloads are cached, HTTPS too.\n\n  \
             foxy run -- pip install requests\n  \
             foxy run -- npm ci\n  \
             foxy run -- cargo fetch\n\n\
             The command gets foxy as its proxy and trusts it, by its environment alone; nothing \
             else on this machine changes. \
             What it downloads from public registries of packages is kept in ~/.cache/foxy-run, \
             and the next `foxy run` takes it \
             from there. Commands that run at the same time have a store each (foxy-run-2 and so \
             on). Connections to all other hosts pass unseen.\n\n\
             For those registries foxy ends TLS itself, with a certificate authority that is made \
             anew for each run, can \
             vouch for nothing else, and whose key is never written down. Towards the registries \
             every certificate is verified \
             as always. A program that brings its own list of authorities, or that pins \
             certificates, refuses foxy; the last \
             line says so.",
        )
        .after_long_help(format!("Hosts that are cached without being named:\n{}", hosts::table()))
        .arg(
            Arg::new("intercept")
                .long("intercept")
                .value_name("HOST")
                .action(ArgAction::Append)
                .value_parser(value_parser!(HostPattern))
                .help("Cache this host too, and all names below it; can be repeated"),
        )
        .arg(
            Arg::new("ca")
                .long("ca")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .help(
                    "Use the certificate authority that `foxy ca init` made there, for all of \
                its hosts",
                ),
        )
        .arg(
            Arg::new("proxy")
                .long("proxy")
                .value_name("HOST:PORT")
                .conflicts_with_all(["intercept", "store", "size", "memory"])
                .help(
                    "Use the foxy that runs there; --ca names the authority it intercepts with, \
                if it does",
                ),
        )
        .arg(
            Arg::new("command")
                .value_name("CMD")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString))
                .help("The command and its arguments"),
        );
    flags::add_some(command, SETTINGS)
}

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let command: Vec<OsString> =
        matches.get_many("command").into_iter().flatten().cloned().collect();
    terminal::set_level(Level::Warning);
    if let Some((name, value)) = environment::EARLIER
        .iter()
        .find_map(|name| Some((name, std::env::var_os(name).filter(|value| !value.is_empty())?)))
    {
        let text = format!(
            "foxy: {name} names {}, which is not used: foxy connects by itself",
            value.display()
        );
        terminal::report(Level::Warning, &text);
    }
    match matches.get_one::<String>("proxy") {
        Some(address) => beside(address, matches, &command),
        None => own::run(matches, &Machine::look(), &command),
    }
}

/// Runs the command with a proxy that runs already.
fn beside(address: &str, matches: &ArgMatches, command: &[OsString]) -> Result<(), Failure> {
    let unusable = |what: String| {
        let text = format!(
            "no proxy answers at {address} (--proxy): {what}; start one there, or leave --proxy \
             out and this command gets its own"
        );
        Failure::Unusable(text)
    };
    let bare = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let (host, port) = bare.rsplit_once(':').ok_or_else(|| unusable("it names no port".into()))?;
    let port: u16 = port.parse().map_err(|_| unusable("it names no port".into()))?;
    let mut places = bare.to_socket_addrs().map_err(|error| unusable(error.to_string()))?;
    let place = places.next().ok_or_else(|| unusable("it has no address".into()))?;
    TcpStream::connect_timeout(&place, PATIENCE).map_err(|error| unusable(error.to_string()))?;
    let authority = match matches.get_one::<PathBuf>("ca") {
        Some(folder) => Some(certificate(folder)?),
        None => None,
    };
    in_environment(command, (host, port), authority.as_deref(), &further(matches))
}

fn certificate(folder: &Path) -> Result<String, Failure> {
    authority_folder::facts(folder)?;
    let path = authority_folder::certificate(folder);
    std::fs::read_to_string(&path)
        .map_err(|error| Failure::Unusable(format!("{}: {error}", path.display())))
}

/// Files of authorities that sign for origin servers; the command may meet these servers unseen
/// too.
fn further(matches: &ArgMatches) -> Vec<PathBuf> {
    matches.get_many::<OsString>("origin-ca").into_iter().flatten().map(PathBuf::from).collect()
}

/// Runs the command so that it goes through `proxy` and trusts `authority`, which is in PEM.
fn in_environment(
    command: &[OsString],
    proxy: (&str, u16),
    authority: Option<&str>,
    further: &[PathBuf],
) -> Result<(), Failure> {
    let inherited = |name: &str| std::env::var_os(name);
    let home = inherited("HOME").map(|home| PathBuf::from(home).join(".wgetrc"));
    let replaced = [
        inherited("WGETRC").map(PathBuf::from).or(home),
        inherited("APT_CONFIG").map(PathBuf::from),
    ];
    let trusted =
        authority.map(|authority| trust::write(&Trusted { authority, further, replaced }));
    let trusted = trusted.transpose()?;
    let files = trusted.as_ref().map(|(_, files)| files);
    child::run(command, &environment::variables(proxy, files, inherited))
}
