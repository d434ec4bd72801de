//! `foxy run -- CMD…`: runs a command with foxy as its proxy. A second run receives its HTTPS
//! downloads from the cache. The proxy runs in this process, and ends with the command. With
//! `--proxy`, the command uses a running proxy instead.

mod child;
mod environment;
mod hosts;
mod own;
mod sharing;
mod tally;
mod trust;

use crate::authority_folder;
use crate::failure::Failure;
use crate::settings::flags;
use crate::terminal::{self, Level};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use environment::ProxyAddress;
use foxy_base::HostPattern;
use foxy_cli::machine::Machine;
use std::ffi::OsString;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trust::{TrustFiles, Trusted};

/// Time limit to connect to the proxy of `--proxy`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings, by key, that `foxy run` offers as flags.
const SETTINGS: &[&str] = &[
    "store",
    "size",
    "memory",
    "origin-ca",
    "allow-destination",
    "connect-ports",
    "parent",
    "parent-credentials-file",
    "no-proxy",
    "access-log",
    "access-log-format",
];

pub fn command() -> Command {
    let command = Command::new("run")
        .about("Run a command and cache its downloads, including HTTPS")
        .long_about(
            "Run a command and cache its downloads, including HTTPS.\n\n  \
             foxy run -- pip install requests\n  \
             foxy run -- npm ci\n  \
             foxy run -- cargo fetch\n\n\
             foxy sets environment variables of the command, so that the command uses foxy as its \
             proxy and trusts foxy. Nothing else on this machine changes. foxy stores downloads \
             from public package registries in ~/.cache/foxy-run, and the next `foxy run` serves \
             them from this store. Commands that run at the same time share the store through the \
             first of them. foxy tunnels connections to all other hosts unread. foxy \
             itself uses the proxy that the environment names.\n\n\
             For the registries foxy terminates TLS, with a certificate authority that foxy makes \
             for each run. This authority can sign only for these hosts, and foxy never writes \
             its private key to disk. foxy verifies the certificates of the registries as always. \
             A program with its own list of authorities or with pinned certificates refuses foxy. \
             The last line of the output then says so.",
        )
        .after_long_help(format!("Hosts that foxy caches without --intercept:\n{}", hosts::table()))
        .arg(
            Arg::new("intercept")
                .long("intercept")
                .value_name("HOST")
                .action(ArgAction::Append)
                .value_parser(value_parser!(HostPattern))
                .help("Also cache this host and all names below it; can be repeated"),
        )
        .arg(
            Arg::new("ca")
                .long("ca")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .help("Use the certificate authority in this folder, and cache downloads from every host that it may sign for"),
        )
        .arg(
            Arg::new("proxy")
                .long("proxy")
                .value_name("HOST:PORT")
                .conflicts_with_all(["intercept", "store", "size", "memory"])
                .help(
                    "Use the foxy that runs at this address; if that foxy intercepts HTTPS, name \
                     the folder of its authority with --ca",
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
                .help("Command to run, with its arguments"),
        );
    flags::add_some(command, SETTINGS)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let command: Vec<OsString> =
        matches.get_many("command").into_iter().flatten().cloned().collect();
    terminal::set_level(Level::Warning);
    match matches.get_one::<String>("proxy") {
        Some(address) => run_with_proxy_at(address, matches, &command),
        None => own::run(matches, &Machine::look(), &command),
    }
}

/// Runs the command with the proxy of `--proxy`, which is already running.
fn run_with_proxy_at(
    address: &str,
    matches: &ArgMatches,
    command: &[OsString],
) -> Result<(), Failure> {
    let unusable = |reason: String| {
        let text = format!(
            "no proxy answers at {address} (--proxy): {reason}; start a proxy at this address, or \
             leave --proxy out, so that this command starts its own"
        );
        Failure::Unusable(text)
    };
    let bare = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    let (host, port) =
        bare.rsplit_once(':').ok_or_else(|| unusable("the address has no port".into()))?;
    let port: u16 = port.parse().map_err(|_| unusable("the address has no port".into()))?;
    let mut addresses = bare.to_socket_addrs().map_err(|error| unusable(error.to_string()))?;
    let address = addresses.next().ok_or_else(|| unusable("the name has no address".into()))?;
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

/// Returns the files of `--origin-ca`, whose authorities sign for origin servers. The command must
/// trust them too, because it reaches some servers through tunnels without interception.
fn further_authorities(matches: &ArgMatches) -> Vec<PathBuf> {
    matches.get_many::<OsString>("origin-ca").into_iter().flatten().map(PathBuf::from).collect()
}

/// Runs the command with environment variables that select `proxy` and trust `authority` (a
/// certificate in PEM).
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
