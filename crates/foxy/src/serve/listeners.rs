//! Opens foxy's listening sockets, before foxy opens its stores. If an address is in use, retries
//! for a short time, because a process that was just killed may still hold it.

use crate::failure::Failure;
use crate::serve::activation::Purpose;
use crate::serve::socket_file::{self, SocketFile};
use crate::serve::trial::{Finding, Severity};
use crate::settings::listen_address::ListenAddress;
use crate::settings::rows::Network;
use foxy_base::clock;
use foxy_proxy::core::addresses::transparency::make_transparent;
use foxy_proxy::server::listener::{ListenSocket, ListenerKind, SharedListener};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::fmt::Display;
use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

/// Longest wait for a killed process to release its address or its stores.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(1);
const PREDECESSOR_POLL: Duration = Duration::from_millis(10);

/// Number of connections that may wait at an admin socket.
const ADMIN_BACKLOG: i32 = 128;

/// Error number EPERM: foxy lacks a capability.
const NOT_PERMITTED: i32 = 1;
const NET_ADMIN: &str = "give foxy the capability CAP_NET_ADMIN";

/// Error number EAFNOSUPPORT: the system does not support this kind of address, such as IPv6.
const NO_SUCH_FAMILY: i32 = 97;

/// The sockets on which clients reach the proxy.
#[derive(Debug, Default)]
pub struct ProxyListeners {
    /// TCP addresses of plain listeners. Each worker opens a socket of its own for each address.
    pub listen: Vec<SocketAddr>,
    pub listen_tls: Vec<SocketAddr>,
    pub listen_transparent: Vec<SocketAddr>,
    pub listen_nodes: Vec<SocketAddr>,
    /// Sockets that all workers share.
    pub shared: Vec<SharedListener>,
    /// Addresses of the sockets in `shared`, for the start-up message.
    pub shown: Vec<(ListenAddress, ListenerKind)>,
}

impl ProxyListeners {
    /// Returns a listener for a free port of the loopback address, and its address. Clients may
    /// connect before the proxy starts.
    pub fn loopback() -> Result<(Self, SocketAddr), Failure> {
        let wanted: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let bound = TcpListener::bind(wanted).and_then(|it| Ok((it.local_addr()?, it)));
        let (address, listener) = bound.map_err(|error| cannot_listen(wanted, "run", &error))?;
        let mut listeners = Self::default();
        listeners.add(shared(Purpose::Listen, ListenSocket::Tcp(listener), false));
        Ok((listeners, address))
    }
}

/// All sockets on which foxy listens.
#[derive(Debug, Default)]
pub struct Listeners {
    pub proxy: ProxyListeners,
    pub admin: Vec<SharedListener>,
    /// The files of foxy's Unix sockets. Dropping this field removes the files.
    pub files: Vec<SocketFile>,
}

/// Listening sockets with their use, opened by systemd or by the old process of an upgrade.
pub type OpenSockets = Vec<(Purpose, SharedListener)>;

/// A socket for a TCP address of the settings: newly bound, or from the old process.
enum BoundTcp {
    New(Socket),
    Inherited(SharedListener),
}

impl Listeners {
    /// Checks that foxy can listen at every address of the settings. Opens the admin sockets and
    /// Unix sockets; workers open their TCP sockets later. Takes matching sockets of an old process
    /// from `inherited`, and closes the rest.
    pub fn open(
        mut self,
        network: &Network,
        nodes: &[ListenAddress],
        mut inherited: OpenSockets,
    ) -> Result<Self, Failure> {
        let lists: [(Purpose, &[ListenAddress]); 5] = [
            (Purpose::Listen, &network.listen),
            (Purpose::ListenTls, &network.listen_tls),
            (Purpose::ListenTransparent, &network.listen_transparent),
            (Purpose::FleetListen, nodes),
            (Purpose::Admin, &network.admin),
        ];
        for (purpose, addresses) in lists {
            let bind = Binding::of(purpose, network);
            for address in addresses {
                self.open_address((purpose, bind), address, &mut inherited)
                    .map_err(|error| cannot_listen(address, purpose.flag(), &error))?;
            }
        }
        Ok(self)
    }

    fn open_address(
        &mut self,
        (purpose, binding): (Purpose, Binding),
        address: &ListenAddress,
        inherited: &mut OpenSockets,
    ) -> std::io::Result<()> {
        if let ListenAddress::Unix(path) = address {
            let shared = match take(inherited, purpose, |open| open == address) {
                Some(shared) => {
                    self.files.push(SocketFile::adopt(path)?);
                    shared
                }
                None => {
                    let (listener, file) = socket_file::open(path)?;
                    self.files.push(file);
                    shared(purpose, ListenSocket::Unix(listener), false)
                }
            };
            self.add(purpose, shared);
            return Ok(());
        }
        let bind = |wanted: SocketAddr| match take(inherited, purpose, |open| meets(open, wanted)) {
            Some(shared) => Ok(BoundTcp::Inherited(shared)),
            None => binding.bind(wanted).map(BoundTcp::New),
        };
        for (wanted, bound) in tcp(address, bind)? {
            match (bound, purpose) {
                (BoundTcp::Inherited(shared), _) => self.add(purpose, shared),
                (BoundTcp::New(socket), Purpose::Admin) => {
                    socket.listen(ADMIN_BACKLOG)?;
                    self.admin.push(shared(purpose, ListenSocket::Tcp(socket.into()), false));
                }
                (BoundTcp::New(_), Purpose::Listen) => self.proxy.listen.push(wanted),
                (BoundTcp::New(_), Purpose::ListenTls) => self.proxy.listen_tls.push(wanted),
                (BoundTcp::New(_), Purpose::ListenTransparent) => {
                    self.proxy.listen_transparent.push(wanted);
                }
                (BoundTcp::New(_), Purpose::FleetListen) => self.proxy.listen_nodes.push(wanted),
            }
        }
        Ok(())
    }

    /// Adds the sockets that systemd opened. If `is_default` says that a setting of addresses has
    /// its default value, these sockets replace the default addresses.
    pub fn activate(
        given: OpenSockets,
        network: &mut Network,
        is_default: impl Fn(&str) -> bool,
    ) -> Self {
        let mut listeners = Self::default();
        for (purpose, shared) in given {
            match purpose {
                Purpose::Admin if is_default("admin") => network.admin.clear(),
                Purpose::Admin => {}
                _ if is_default("listen") => network.listen.clear(),
                _ => {}
            }
            listeners.add(purpose, shared);
        }
        listeners
    }

    fn add(&mut self, purpose: Purpose, shared: SharedListener) {
        if purpose == Purpose::Admin {
            self.admin.push(shared);
        } else {
            self.proxy.add(shared);
        }
    }
}

impl ProxyListeners {
    /// Returns the TCP addresses of the settings.
    pub fn tcp_addresses(&self) -> Vec<SocketAddr> {
        [&self.listen[..], &self.listen_tls, &self.listen_transparent, &self.listen_nodes].concat()
    }

    /// Adds sockets that all workers share.
    pub fn add(&mut self, shared: SharedListener) {
        let address = shared.sockets.first().and_then(address_of);
        self.shown.extend(address.map(|address| (address, shared.kind)));
        self.shared.push(shared);
    }
}

/// Returns a listener that consists of a single socket. `is_given` is true if systemd opened the
/// socket.
pub fn shared(purpose: Purpose, socket: ListenSocket, is_given: bool) -> SharedListener {
    SharedListener { sockets: vec![socket], kind: purpose.kind(), is_given }
}

/// Removes from the list, and returns, the first listener that has this use and whose address
/// `is_wanted` accepts.
fn take(
    inherited: &mut OpenSockets,
    purpose: Purpose,
    is_wanted: impl Fn(&ListenAddress) -> bool,
) -> Option<SharedListener> {
    let is_wanted = |(open_for, shared): &(Purpose, SharedListener)| {
        let address = shared.sockets.first().and_then(address_of);
        *open_for == purpose && address.is_some_and(|address| is_wanted(&address))
    };
    let place = inherited.iter().position(is_wanted)?;
    Some(inherited.remove(place).1)
}

/// Returns true if an open socket is suitable for the address `wanted`. Port 0 accepts any port.
fn meets(open: &ListenAddress, wanted: SocketAddr) -> bool {
    matches!(open, ListenAddress::Socket(open)
        if open.ip() == wanted.ip() && [0, open.port()].contains(&wanted.port()))
}

/// Returns the address or path at which a socket listens. Returns `None` for a Unix socket without
/// a path.
pub fn address_of(socket: &ListenSocket) -> Option<ListenAddress> {
    match socket {
        ListenSocket::Tcp(listener) => listener.local_addr().ok().map(ListenAddress::Socket),
        ListenSocket::Unix(listener) => {
            let address = listener.local_addr().ok()?;
            address.as_pathname().map(|path| ListenAddress::Unix(path.to_owned()))
        }
    }
}

/// Tries whether foxy could listen at every address of the settings, and reports the failures.
pub fn try_out(network: &Network, nodes: &[ListenAddress]) -> Vec<Finding> {
    let lists: [(&str, &[ListenAddress], Purpose); 5] = [
        ("listen", &network.listen, Purpose::Listen),
        ("listen-tls", &network.listen_tls, Purpose::ListenTls),
        ("listen-transparent", &network.listen_transparent, Purpose::ListenTransparent),
        ("fleet.listen", nodes, Purpose::FleetListen),
        ("admin", &network.admin, Purpose::Admin),
    ];
    let all = lists.into_iter().flat_map(|(key, list, purpose)| {
        let binding = Binding::of(purpose, network);
        list.iter().map(move |at| (key, at, binding))
    });
    let judge = |(key, address, binding): (&'static str, &ListenAddress, Binding)| {
        let tried = match address {
            ListenAddress::Unix(path) => socket_file::try_out(path),
            _ => tcp(address, |wanted| binding.bind(wanted)).map(drop),
        };
        let error = tried.err()?;
        let is_in_use = error.kind() == ErrorKind::AddrInUse;
        let severity = if is_in_use { Severity::Warning } else { Severity::Error };
        let flag = format!("--{}", key.replace('.', "-"));
        let message = cannot_listen(address, &flag, &error).to_string();
        Some(Finding { key, severity, message })
    };
    all.filter_map(judge).chain(origin_source(network)).collect()
}

/// Calls `bind` for each TCP address of `address`, and returns the results. If the machine has no
/// IPv6, leaves out the IPv6 address of `localhost`, and uses IPv4 alone for `:PORT`.
fn tcp<T>(
    address: &ListenAddress,
    mut bind: impl FnMut(SocketAddr) -> std::io::Result<T>,
) -> std::io::Result<Vec<(SocketAddr, T)>> {
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

/// Whether a listener must accept connections to addresses of other machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    Usual,
    Transparent,
}

impl Binding {
    fn of(purpose: Purpose, network: &Network) -> Self {
        let is_tproxy = !network.is_redirected();
        if purpose == Purpose::ListenTransparent && is_tproxy {
            Self::Transparent
        } else {
            Self::Usual
        }
    }

    /// Binds an address without SO_REUSEPORT, so that this fails while another process uses the
    /// address. The socket does not listen, so no client connects before a worker listens.
    fn bind(self, address: SocketAddr) -> std::io::Result<Socket> {
        let is_in_use = |error: &Error| error.kind() == ErrorKind::AddrInUse;
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        patiently(is_in_use, || socket.bind(&address.into()))?;
        if self == Self::Transparent {
            make_transparent(&SockRef::from(&socket), address.ip())?;
        }
        Ok(socket)
    }
}

/// Lets the transparent sockets of systemd accept connections to addresses of other machines, and
/// checks whether foxy may connect with the addresses of clients.
pub fn check_transparency(network: &Network, proxy: &ProxyListeners) -> Result<(), Failure> {
    let transparent = proxy
        .shared
        .iter()
        .filter(|shared| shared.kind == ListenerKind::Transparent && !network.is_redirected());
    for socket in transparent.flat_map(|shared| &shared.sockets) {
        socket.make_transparent().map_err(|error| {
            let text = format!(
                "systemd passes foxy a socket for `listen-transparent`: {error}; {NET_ADMIN}, or \
                 set Transparent=yes in the socket's unit"
            );
            Failure::Unusable(text)
        })?;
    }
    match origin_source(network) {
        Some(finding) => Err(Failure::Unusable(finding.message)),
        None => Ok(()),
    }
}

/// Reports whether foxy lacks the right to connect with the addresses of clients.
fn origin_source(network: &Network) -> Option<Finding> {
    let bound = || Binding::Transparent.bind((Ipv4Addr::LOCALHOST, 0).into());
    let error = (network.origin_source == "client").then(bound)?.err()?;
    let message = format!("`origin-source = \"client\"`: {error}; {NET_ADMIN}");
    Some(Finding { key: "origin-source", severity: Severity::Error, message })
}

fn has_no_ipv6(wanted: SocketAddr, error: &Error) -> bool {
    wanted.is_ipv6()
        && (error.kind() == ErrorKind::AddrNotAvailable
            || error.raw_os_error() == Some(NO_SUCH_FAMILY))
}

/// Repeats `attempt` until it succeeds, for at most [`PREDECESSOR_PATIENCE`]. Gives up at once
/// after an error for which `may_pass` is false, because waiting does not help then.
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
        _ if error.raw_os_error() == Some(NOT_PERMITTED) => NET_ADMIN,
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
    fn an_inherited_socket_takes_the_place_of_its_address_alone() {
        let socket = |purpose| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
            (purpose, shared(purpose, ListenSocket::Tcp(listener), false))
        };
        let address = |entry: &(Purpose, SharedListener)| {
            entry.1.sockets.first().and_then(address_of).expect("an address")
        };
        let mut inherited = vec![socket(Purpose::Admin), socket(Purpose::Listen)];
        let open = address(&inherited[1]);
        let network = |listen: Vec<ListenAddress>| Network { listen, admin: vec![], ..network() };
        let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let opened = Listeners::default()
            .open(&network(vec![ListenAddress::Socket(any)]), &[], inherited.split_off(1))
            .expect("opened");
        assert_eq!(opened.proxy.shown, [(open.clone(), ListenerKind::Plain)]);
        assert!(opened.proxy.listen.is_empty() && opened.proxy.shared.len() == 1);
        let network = network(vec![ListenAddress::Socket(any)]);
        let other = Listeners::default().open(&network, &[], inherited);
        let other = other.expect("opened");
        assert_eq!((other.proxy.listen, other.proxy.shared.len()), (vec![any], 0));
    }

    fn network() -> Network {
        let machine = foxy_cli::machine::Machine { cores: 2, ..Default::default() };
        let loaded = crate::settings::load(None, None, &machine);
        loaded.unwrap_or_else(|all| panic!("{all}")).settings.network
    }

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
