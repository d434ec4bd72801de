//! Opens listening sockets before foxy opens its stores. Retries for a short time, because a
//! process that was just killed may still hold the address.

use crate::failure::Failure;
use crate::serve::activation::Purpose;
use crate::serve::socket_file::{self, SocketFile};
use crate::serve::trial::{Finding, Severity};
use crate::settings::listen_address::ListenAddress;
use crate::settings::rows::Network;
use foxy_base::clock;
use foxy_proxy::server::listener::{ListenSocket, SharedListener};
use std::fmt::Display;
use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

/// Time that a killed process may take to release its address and its stores.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(1);
const PREDECESSOR_POLL: Duration = Duration::from_millis(10);

/// The operating system does not support this kind of address (EAFNOSUPPORT).
const NO_SUCH_FAMILY: i32 = 97;

/// The sockets on which clients reach the proxy.
#[derive(Debug, Default)]
pub struct ProxyListeners {
    /// TCP addresses. Each worker opens its own sockets for them.
    pub listen: Vec<SocketAddr>,
    pub listen_tls: Vec<SocketAddr>,
    /// Sockets that all workers share.
    pub shared: Vec<SharedListener>,
    /// Addresses of the shared sockets, for the start-up message. The flag is true with TLS.
    pub shown: Vec<(ListenAddress, bool)>,
}

impl ProxyListeners {
    /// Returns a free port of the loopback address.
    pub fn loopback() -> Self {
        Self { listen: vec![(Ipv4Addr::LOCALHOST, 0).into()], ..Self::default() }
    }
}

/// All sockets on which foxy listens.
#[derive(Debug, Default)]
pub struct Listeners {
    pub proxy: ProxyListeners,
    pub admin: Vec<ListenSocket>,
    /// Dropping this field removes the files of the Unix sockets.
    pub files: Vec<SocketFile>,
}

impl Listeners {
    /// Checks that foxy can listen at every address of the settings. Opens all sockets except those
    /// that the workers open.
    pub fn open(mut self, network: &Network) -> Result<Self, Failure> {
        let listeners = &mut self;
        for (addresses, flag) in
            [(&network.listen, "--listen"), (&network.listen_tls, "--listen-tls")]
        {
            let is_tls = flag == "--listen-tls";
            for address in addresses {
                if let Some(socket) = listeners.unix(address, flag)? {
                    listeners.proxy.shared.push(SharedListener { socket, is_tls });
                    listeners.proxy.shown.push((address.clone(), is_tls));
                }
                let proxy = &mut listeners.proxy;
                let place = if is_tls { &mut proxy.listen_tls } else { &mut proxy.listen };
                let bound = tcp(address).map_err(|error| cannot_listen(address, flag, &error))?;
                place.extend(bound.into_iter().map(|(wanted, _)| wanted));
            }
        }
        for address in &network.admin {
            let unix = listeners.unix(address, "--admin")?;
            let tcp = tcp(address).map_err(|error| cannot_listen(address, "--admin", &error))?;
            let tcp = tcp.into_iter().map(|(_, socket)| socket);
            listeners.admin.extend(unix.into_iter().chain(tcp.map(ListenSocket::Tcp)));
        }
        Ok(self)
    }

    /// Adds the sockets that systemd opened. They take the place of default addresses in
    /// `network`, which `is_default` tells by the key of the setting.
    pub fn activate(
        given: Vec<(Purpose, ListenSocket)>,
        network: &mut Network,
        is_default: impl Fn(&str) -> bool,
    ) -> Self {
        let mut listeners = Self::default();
        for (purpose, socket) in given {
            let is_tls = purpose == Purpose::ListenTls;
            match purpose {
                Purpose::Admin if is_default("admin") => network.admin.clear(),
                Purpose::Listen | Purpose::ListenTls if is_default("listen") => {
                    network.listen.clear();
                }
                _ => {}
            }
            if purpose == Purpose::Admin {
                listeners.admin.push(socket);
                continue;
            }
            listeners.proxy.shown.extend(address_of(&socket).map(|address| (address, is_tls)));
            listeners.proxy.shared.push(SharedListener { socket, is_tls });
        }
        listeners
    }

    fn unix(
        &mut self,
        address: &ListenAddress,
        flag: &str,
    ) -> Result<Option<ListenSocket>, Failure> {
        let ListenAddress::Unix(path) = address else { return Ok(None) };
        let (listener, file) =
            socket_file::open(path).map_err(|error| cannot_listen(address, flag, &error))?;
        self.files.push(file);
        Ok(Some(ListenSocket::Unix(listener)))
    }
}

/// Returns the address that a socket has. Returns `None` if the socket has no path or address.
pub fn address_of(socket: &ListenSocket) -> Option<ListenAddress> {
    match socket {
        ListenSocket::Tcp(listener) => listener.local_addr().ok().map(ListenAddress::Socket),
        ListenSocket::Unix(listener) => {
            let address = listener.local_addr().ok()?;
            address.as_pathname().map(|path| ListenAddress::Unix(path.to_owned()))
        }
    }
}

/// Tries whether foxy can listen at every address of the settings.
pub fn try_out(network: &Network) -> Vec<Finding> {
    let lists = [
        ("listen", &network.listen),
        ("listen-tls", &network.listen_tls),
        ("admin", &network.admin),
    ];
    let all = lists.into_iter().flat_map(|(key, list)| list.iter().map(move |at| (key, at)));
    let judge = |(key, address): (&'static str, &ListenAddress)| {
        let tried = match address {
            ListenAddress::Unix(path) => socket_file::try_out(path),
            _ => tcp(address).map(drop),
        };
        let error = tried.err()?;
        let is_in_use = error.kind() == ErrorKind::AddrInUse;
        let severity = if is_in_use { Severity::Warning } else { Severity::Error };
        let message = cannot_listen(address, &format!("--{key}"), &error).to_string();
        Some(Finding { key, severity, message })
    };
    all.filter_map(judge).collect()
}

/// Binds the TCP addresses of `address` exclusively. Fails if another process uses an address.
/// Leaves out IPv6 addresses that the setting does not name if the machine has no IPv6.
fn tcp(address: &ListenAddress) -> std::io::Result<Vec<(SocketAddr, TcpListener)>> {
    let mut bound = Vec::new();
    for wanted in address.sockets() {
        match bind(wanted) {
            Ok(listener) => bound.push((wanted, listener)),
            Err(error) if !has_no_ipv6(wanted, &error) => return Err(error),
            Err(error) => match *address {
                ListenAddress::Localhost(_) => {}
                ListenAddress::All(port) => {
                    let wanted = (Ipv4Addr::UNSPECIFIED, port).into();
                    bound.push((wanted, bind(wanted)?));
                }
                _ => return Err(error),
            },
        }
    }
    Ok(bound)
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let is_in_use = |error: &Error| error.kind() == ErrorKind::AddrInUse;
    patiently(is_in_use, || TcpListener::bind(address))
}

fn has_no_ipv6(wanted: SocketAddr, error: &Error) -> bool {
    wanted.is_ipv6()
        && (error.kind() == ErrorKind::AddrNotAvailable
            || error.raw_os_error() == Some(NO_SUCH_FAMILY))
}

/// Repeats `attempt` until it succeeds, for at most [`PREDECESSOR_PATIENCE`]. Gives up at once if
/// `attempt` returns an error that a killed process cannot cause.
pub fn patiently<T, E>(
    may_pass: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let until = clock::monotonic() + PREDECESSOR_PATIENCE;
    loop {
        match attempt() {
            Err(error) if may_pass(&error) && clock::monotonic() < until => {
                std::thread::sleep(PREDECESSOR_POLL);
            }
            result => return result,
        }
    }
}

pub fn cannot_listen(address: impl Display, flag: &str, error: &Error) -> Failure {
    let remedy = match error.kind() {
        ErrorKind::AddrInUse => "stop the program that listens there, or give another address",
        ErrorKind::AddrNotAvailable => {
            "this machine does not have the address; `ip address` shows its addresses"
        }
        ErrorKind::PermissionDenied => {
            "give a port above 1023 and a folder that foxy's user may write, or give foxy the \
             capability CAP_NET_BIND_SERVICE"
        }
        _ => "give another address",
    };
    Failure::Unusable(format!("cannot listen on {address} ({flag}): {error}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passing_errors_are_retried() {
        let mut left = 3;
        let result = patiently(
            |_| true,
            || {
                left -= 1;
                if left == 0 { Ok(()) } else { Err(()) }
            },
        );
        assert_eq!(result, Ok(()));
        let mut attempts = 0;
        let result: Result<(), u8> = patiently(
            |_| false,
            || {
                attempts += 1;
                Err(7)
            },
        );
        assert_eq!((result, attempts), (Err(7), 1));
    }
}
