//! The origin that a command starts on this machine.

use foxy_cli::failure::Failure;
use foxy_lab::{Origin, OriginOptions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

pub fn start(command: &str, servers: u32) -> Result<Origin, Failure> {
    Origin::start_servers(here(), servers).map_err(|error| failed(command, servers, &error))
}

pub fn start_tls(command: &str, servers: u32) -> Result<Origin, Failure> {
    Origin::start_tls(here(), servers).map_err(|error| failed(command, servers, &error))
}

fn here() -> OriginOptions {
    OriginOptions { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), threads: 1 }
}

fn failed(command: &str, servers: u32, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse if servers > 1 => {
            format!("{servers} consecutive ports are nowhere free on this machine; end what listens there")
        }
        io::ErrorKind::AddrInUse => {
            "this machine has no port left to listen at; wait, or widen net.ipv4.ip_local_port_range".into()
        }
        _ => error.to_string(),
    };
    Failure::Failed(format!("{command}: no origin: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_for_which_no_port_is_left_says_so() {
        let said = |servers| failed("load", servers, &io::ErrorKind::AddrInUse.into()).to_string();
        assert!(
            said(1).contains("no origin: this machine has no port left to listen at;"),
            "{}",
            said(1)
        );
        assert!(said(4).contains("no origin: 4 consecutive ports are nowhere free"), "{}", said(4));
    }
}
