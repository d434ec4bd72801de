//! The origin that a command starts on this machine when it is given none.

use crate::failure::Failure;
use foxy_lab::{Origin, OriginOptions};
use std::net::{Ipv4Addr, SocketAddr};

/// So many servers on free ports of the loopback address; `command` is whose they are.
///
/// # Errors
/// When they cannot listen.
pub fn start(command: &str, servers: u32) -> Result<Origin, Failure> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Origin::start_servers(OriginOptions { listen, threads: 1 }, servers)
        .map_err(|error| Failure::Failed(format!("{command}: no origin: {error}")))
}
