//! The origin that a command starts on this machine when it is given none.

use crate::failure::Failure;
use foxy_lab::{Origin, OriginOptions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// So many servers on free ports of the loopback address; `command` is whose they are.
///
/// # Errors
/// When they cannot listen.
pub fn start(command: &str, servers: u32) -> Result<Origin, Failure> {
    Origin::start_servers(here(), servers).map_err(|error| failed(command, &error))
}

/// The same behind TLS.
///
/// # Errors
/// When they cannot listen, or have no certificate.
pub fn start_tls(command: &str, servers: u32) -> Result<Origin, Failure> {
    Origin::start_tls(here(), servers).map_err(|error| failed(command, &error))
}

fn here() -> OriginOptions {
    OriginOptions { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), threads: 1 }
}

fn failed(command: &str, error: &io::Error) -> Failure {
    Failure::Failed(format!("{command}: no origin: {error}"))
}
