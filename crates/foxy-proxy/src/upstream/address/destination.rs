//! The *destination policy* decides to which addresses the proxy may connect. It checks the address
//! of each connection, never the host name. So another name for a forbidden address does not help a
//! client. This module does no IO.

use foxy_base::Cidr;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The party that chose an origin. If the operator chose it, the destination policy refuses only
/// port 0 and the proxy's own listening addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChosenBy {
    /// A client named the origin in a request.
    Client,
    /// The configuration names the origin (`--origin`).
    Operator,
}

/// The reason why the destination policy refuses an address or port. IANA's special-purpose
/// registries (RFC 6890 and its updates) list the addresses that are not globally reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DestinationRefusal {
    /// `127.0.0.0/8`, `::1`: the proxy's own machine.
    Loopback,
    /// `169.254.0.0/16`, `fe80::/10`: the local network link.
    LinkLocal,
    /// Private networks: RFC 1918, `fc00::/7`, `fec0::/10`, and the local NAT64 prefix
    /// `64:ff9b:1::/48`.
    Private,
    /// `100.64.0.0/10` (RFC 6598): addresses behind a carrier's address translation.
    SharedAddressSpace,
    /// An address at which cloud providers give machines credentials and instance data.
    Metadata,
    /// `0.0.0.0/8`, `::`: unspecified addresses. A connection to such an address reaches the
    /// proxy's own machine.
    Unspecified,
    /// `224.0.0.0/4`, `ff00::/8`: multicast addresses.
    Multicast,
    /// `255.255.255.255`: the broadcast address.
    Broadcast,
    /// Other addresses that are not globally reachable: `240.0.0.0/4`, addresses for benchmarks and
    /// protocols, and IPv6 outside `2000::/3`.
    Reserved,
    /// A public address of the proxy's own machine. Services at this address may be intended for
    /// this machine only.
    OwnMachine,
    /// An address on which the proxy itself listens. The proxy would send the request to itself.
    OwnAddress,
    /// The client sent a CONNECT to a port that is not in [`DestinationPolicy::connect_ports`].
    ConnectPort,
    /// Port 0, on which no server can listen.
    PortZero,
}

impl DestinationRefusal {
    /// Returns a sentence that explains the refusal to people.
    pub fn description(self) -> &'static str {
        match self {
            Self::Loopback => "the host resolves to a loopback address",
            Self::LinkLocal => "the host resolves to a link-local address",
            Self::Private => "the host resolves to a private address",
            Self::SharedAddressSpace => "the host resolves to a shared address (100.64.0.0/10)",
            Self::Metadata => "the host resolves to a cloud metadata address",
            Self::Unspecified => "the host resolves to an unspecified address",
            Self::Multicast => "the host resolves to a multicast address",
            Self::Broadcast => "the host resolves to a broadcast address",
            Self::Reserved => "the host resolves to a reserved address",
            Self::OwnMachine => "the host resolves to an address of the proxy's own machine",
            Self::OwnAddress => "the host resolves to an address of this proxy",
            Self::ConnectPort => "CONNECT to this port is not allowed",
            Self::PortZero => "port 0 accepts no connections",
        }
    }

    /// Returns the operator's setting that can permit the destination, if there is one.
    pub const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::OwnAddress | Self::PortZero => None,
            Self::ConnectPort => {
                Some("to allow it, add the port to connect-ports (--connect-port PORT)")
            }
            _ => Some(
                "to allow it, add the address's block to allow-destination (--allow-destination \
                 CIDR)",
            ),
        }
    }

    /// Returns the reason phrase of the answer's status line. Many programs show only this phrase
    /// to their users.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Loopback => "Loopback address: see --allow-destination",
            Self::LinkLocal => "Link-local address: see --allow-destination",
            Self::Private => "Private address: see --allow-destination",
            Self::SharedAddressSpace => "Shared address: see --allow-destination",
            Self::Metadata => "Cloud metadata address: see --allow-destination",
            Self::Unspecified => "Unspecified address: see --allow-destination",
            Self::Multicast => "Multicast address: see --allow-destination",
            Self::Broadcast => "Broadcast address: see --allow-destination",
            Self::Reserved => "Reserved address: see --allow-destination",
            Self::OwnMachine => "Address of the proxy's machine: see --allow-destination",
            Self::OwnAddress => "Address of the proxy itself",
            Self::ConnectPort => "Port not in connect-ports: see --connect-port",
            Self::PortZero => "Port 0",
        }
    }
}

impl fmt::Display for DestinationRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.description())
    }
}

impl std::error::Error for DestinationRefusal {}

/// The destination policy: the addresses and ports to which the proxy may connect for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationPolicy {
    /// Address blocks that are allowed even if they are not globally reachable.
    pub allowed: Vec<Cidr>,
    /// Ports to which CONNECT is allowed.
    pub connect_ports: Vec<u16>,
    /// Listening addresses of this proxy. An unspecified address (`0.0.0.0`, `::`) means every
    /// address of the machine.
    pub own: Vec<SocketAddr>,
}

impl Default for DestinationPolicy {
    fn default() -> Self {
        Self { allowed: Vec::new(), connect_ports: vec![443], own: Vec::new() }
    }
}

impl DestinationPolicy {
    /// Checks whether the proxy may connect to an address. The caller must check every address
    /// immediately before connecting.
    pub fn check_address(
        &self,
        address: SocketAddr,
        chosen: ChosenBy,
    ) -> Result<(), DestinationRefusal> {
        let ip = address.ip().to_canonical();
        if address.port() == 0 {
            return Err(DestinationRefusal::PortZero);
        }
        if self.is_own(ip, address.port()) {
            return Err(DestinationRefusal::OwnAddress);
        }
        if chosen == ChosenBy::Operator || self.allows(ip) {
            return Ok(());
        }
        let embedded = embedded_in(ip);
        let refusal = refusal_of(ip).or_else(|| {
            embedded.into_iter().flatten().find_map(|address| {
                let address = IpAddr::V4(address);
                refusal_of(address).filter(|_| !self.allows(address))
            })
        });
        refusal.map_or(Ok(()), Err)
    }

    /// Refuses an address of the proxy's own machine, unless the operator chose or allowed it.
    /// `is_own` tells whether an address belongs to the machine. The address must have passed
    /// [`Self::check_address`].
    pub fn check_machine(
        &self,
        ip: IpAddr,
        chosen: ChosenBy,
        mut is_own: impl FnMut(IpAddr) -> bool,
    ) -> Result<(), DestinationRefusal> {
        let ip = ip.to_canonical();
        if chosen == ChosenBy::Operator || self.allows(ip) {
            return Ok(());
        }
        let embedded = embedded_in(ip).into_iter().flatten().map(IpAddr::V4);
        let mut reached =
            std::iter::once(ip).chain(embedded.filter(|address| !self.allows(*address)));
        if reached.any(&mut is_own) { Err(DestinationRefusal::OwnMachine) } else { Ok(()) }
    }

    fn allows(&self, ip: IpAddr) -> bool {
        self.allowed.iter().any(|block| block.contains(ip))
    }

    /// Checks whether the proxy may use an open connection. If both ends are on this machine, the
    /// peer is the proxy itself or another service of the machine. The peer is the proxy if the
    /// proxy listens on the peer's port for every address.
    pub fn check_connection(
        &self,
        local: SocketAddr,
        peer: SocketAddr,
        chosen: ChosenBy,
    ) -> Result<(), DestinationRefusal> {
        let same_machine = local.ip().to_canonical() == peer.ip().to_canonical();
        let listens = |own: &SocketAddr| own.ip().is_unspecified() && own.port() == peer.port();
        if same_machine && self.own.iter().any(listens) {
            return Err(DestinationRefusal::OwnAddress);
        }
        self.check_machine(peer.ip(), chosen, |_| same_machine)
    }

    /// Checks whether clients may send CONNECT for this port.
    pub fn check_connect_port(&self, port: u16) -> Result<(), DestinationRefusal> {
        if self.connect_ports.contains(&port) {
            Ok(())
        } else {
            Err(DestinationRefusal::ConnectPort)
        }
    }

    fn is_own(&self, ip: IpAddr, port: u16) -> bool {
        self.own.iter().any(|own| {
            let own_ip = own.ip().to_canonical();
            let reaches = own_ip == ip
                || (own_ip.is_unspecified() && (ip.is_loopback() || ip.is_unspecified()))
                || (own_ip.is_loopback() && ip.is_unspecified());
            own.port() == port && reaches
        })
    }
}

/// Returns the refusal for the special-purpose block that contains the address. Returns `None` if
/// the address is globally reachable.
fn refusal_of(address: IpAddr) -> Option<DestinationRefusal> {
    match address {
        IpAddr::V4(address) => refusal_of_v4(address),
        IpAddr::V6(address) => refusal_of_v6(address),
    }
}

fn refusal_of_v4(address: Ipv4Addr) -> Option<DestinationRefusal> {
    use DestinationRefusal as Refusal;
    Some(match address.octets() {
        [169, 254, 169, 254] | [100, 100, 100, 200] | [192, 0, 0, 192] | [168, 63, 129, 16] => {
            Refusal::Metadata
        }
        [0, ..] => Refusal::Unspecified,
        [127, ..] => Refusal::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Refusal::Private,
        [100, 64..=127, ..] => Refusal::SharedAddressSpace,
        [169, 254, ..] => Refusal::LinkLocal,
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => Refusal::Reserved,
        [224..=239, ..] => Refusal::Multicast,
        [255, 255, 255, 255] => Refusal::Broadcast,
        [240..=255, ..] => Refusal::Reserved,
        _ => return None,
    })
}

fn refusal_of_v6(address: Ipv6Addr) -> Option<DestinationRefusal> {
    use DestinationRefusal as Refusal;
    if address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254) {
        return Some(Refusal::Metadata);
    }
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Refusal::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Refusal::Loopback,
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => return None,
        [0x64, 0xff9b, 1, ..] | [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Refusal::Private,
        [0xfe80..=0xfebf, ..] => Refusal::LinkLocal,
        [0xff00..=0xffff, ..] => Refusal::Multicast,
        [0x2001, 0, ..] => return None,
        [0x2001, 0..=0x1ff, ..] => Refusal::Reserved,
        [0x2000..=0x3fff, ..] => return None,
        _ => Refusal::Reserved,
    })
}

/// Returns the IPv4 addresses inside an IPv6 address: NAT64 (RFC 6052), 6to4 (RFC 3056), Teredo's
/// server and client (RFC 4380), and IPv4-compatible (RFC 4291 §2.5.5.1). The caller has already
/// converted IPv4-mapped addresses to IPv4.
fn embedded_in(address: IpAddr) -> [Option<Ipv4Addr>; 2] {
    let IpAddr::V6(address) = address else { return [None, None] };
    let bits = address.to_bits();
    let low = |shift: u32| {
        let bytes = (bits >> shift).to_be_bytes();
        Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15])
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => [Some(low(0)), None],
        [0x2002, ..] => [Some(low(80)), None],
        [0x2001, 0, ..] => [Some(low(64)), Some(Ipv4Addr::from_bits(!low(0).to_bits()))],
        _ => [None, None],
    }
}

#[cfg(test)]
#[path = "destination_tests.rs"]
mod tests;
