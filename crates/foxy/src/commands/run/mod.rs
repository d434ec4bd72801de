//! `foxy run -- CMD…`: runs a command with foxy as its proxy, so that its downloads over HTTPS come
//! from the cache the next time. The proxy lives in this process as long as the command, unless
//! `--proxy` names another.

mod child;
mod environment;
mod hosts;
mod own;
mod tally;
mod trust;

use crate::authority_folder;
use crate::failure::Failure;
use crate::settings::flags;
use crate::terminal::{self, Level};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use environment::ProxyAddress;
use foxy_cli::machine::Machine;
use foxy_proxy::intercept::HostPattern;
use std::ffi::OsString;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trust::{TrustFiles, Trusted};

/// Time that the proxy of `--proxy` may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Keys of the settings that are useful for one command.
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

pub fn command() -> Command {
    let command = Command::new("run")
        .about("Run a command whose downloads are cached, HTTPS too")
        .long_about(
            "Run a command whose downloads are cached, HTTPS too.\n\n  \
             foxy run -- pip install requests\n  \
             foxy run -- npm ci\n  \
             foxy run -- cargo fetch\n\n\
             The command's environment names foxy as its proxy and makes it trust foxy; nothing \
             else on this machine changes. foxy keeps downloads from public package registries in \
             ~/.cache/foxy-run, and the next `foxy run` takes them from there. Commands that run \
             at the same time have a store each (foxy-run-2 and so on). Connections to all other \
             hosts pass unseen.\n\n\
             For those registries foxy ends TLS itself, with a certificate authority that is made \
             for each run and can vouch for nothing else; its key is never written down. foxy \
             verifies the certificates of the registries as always. A program that brings its own \
             list of authorities, or that pins certificates, refuses foxy; the last line says so.",
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
                .help("Use the certificate authority in this folder, for all of its hosts"),
        )
        .arg(
            Arg::new("proxy")
                .long("proxy")
                .value_name("HOST:PORT")
                .conflicts_with_all(["intercept", "store", "size", "memory"])
                .help("Use the foxy that runs there; --ca names its authority, if it intercepts"),
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
        Some(address) => run_with_proxy_at(address, matches, &command),
        None => own::run(matches, &Machine::look(), &command),
    }
}

/// Runs the command with a proxy that runs already.
fn run_with_proxy_at(
    address: &str,
    matches: &ArgMatches,
    command: &[OsString],
) -> Result<(), Failure> {
    let unusable = |reason: String| {
        let text = format!(
            "no proxy answers at {address} (--proxy): {reason}; start one there, or leave --proxy \
             out and this command gets its own"
        );
        Failure::Unusable(text)
    };
    let bare = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let (host, port) = bare.rsplit_once(':').ok_or_else(|| unusable("it names no port".into()))?;
    let port: u16 = port.parse().map_err(|_| unusable("it names no port".into()))?;
    let mut addresses = bare.to_socket_addrs().map_err(|error| unusable(error.to_string()))?;
    let address = addresses.next().ok_or_else(|| unusable("it has no address".into()))?;
    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)
        .map_err(|error| unusable(error.to_string()))?;
    let authority =
        matches.get_one::<PathBuf>("ca").map(|folder| certificate(folder)).transpose()?;
    let proxy = ProxyAddress { host, port };
    in_environment(command, proxy, authority.as_deref(), &further_authorities(matches))
}

fn certificate(folder: &Path) -> Result<String, Failure> {
    authority_folder::facts(folder)?;
    let path = authority_folder::certificate(folder);
    std::fs::read_to_string(&path)
        .map_err(|error| Failure::Unusable(format!("{}: {error}", path.display())))
}

/// Files of authorities that sign for origin servers. The command trusts them too, as tunnels may
/// lead it to these servers.
fn further_authorities(matches: &ArgMatches) -> Vec<PathBuf> {
    matches.get_many::<OsString>("origin-ca").into_iter().flatten().map(PathBuf::from).collect()
}

/// Runs the command with an environment that names `proxy` and trusts `authority`, which is in PEM.
fn in_environment(
    command: &[OsString],
    proxy: ProxyAddress<'_>,
    authority: Option<&str>,
    further: &[PathBuf],
) -> Result<(), Failure> {
    let inherited = |name: &str| std::env::var_os(name);
    let home = inherited("HOME").map(|home| PathBuf::from(home).join(".wgetrc"));
    let replaced = [
        inherited("WGETRC").map(PathBuf::from).or(home),
        inherited("APT_CONFIG").map(PathBuf::from),
    ];
    let folder = authority
        .map(|authority| trust::write(&Trusted { authority, further, replaced }))
        .transpose()?;
    let files = folder.as_ref().map(|folder| TrustFiles::in_folder(folder.path()));
    child::run(command, &environment::variables(proxy, files.as_ref(), inherited))
}
