//! The ground on which a fleet runs: loopback, or a network namespace for each node and for the
//! engine. Between namespaces, single links go down, while clients still reach every node.
//!
//! ```text
//!        test, clients, origin ── 10.90.N.0/24 ── node N (eth0), engine (eth0, N = 4)
//!        bridge `nodes`        ── 10.91.0.0/24 ── node N (nodes)
//!        bridge `engines`      ── 10.92.0.0/24 ── node N (engines), engine (engines)
//! ```

use crate::fleet::NAMES;
use crate::support::namespace::{Neighbour, shell};
use foxy_testkit::ports::free_address;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Number of the engine among all places. The nodes have the numbers before.
pub const ENGINE: usize = NAMES.len();

/// Prepares a namespace for all others. Where this fails, namespaces are of no use.
pub const SET_UP: &str = "ip link set lo up && ip addr add 10.90.0.1/32 dev lo \
    && ip link add nodes type bridge && ip link set nodes up \
    && ip link add engines type bridge && ip link set engines up";

/// A link that can go down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// The link of a node to the engine.
    Engine(usize),
    /// The link of a node to all other nodes.
    Nodes(usize),
}

/// How a link fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// The link is down: both ends lose their carrier.
    Down,
    /// Packets vanish in both directions.
    Silent,
    /// Packets from the engine vanish, or packets from this node to other nodes.
    HalfOpen,
}

impl Cut {
    pub const ALL: [Self; 3] = [Self::Down, Self::Silent, Self::HalfOpen];
}

/// The places of a fleet. On loopback, there are no namespaces.
pub struct Ground {
    namespaces: Vec<Neighbour>,
    loopback: Vec<String>,
}

impl Ground {
    /// Everything runs on loopback.
    pub fn loopback() -> Self {
        let loopback = (0..=3 * NAMES.len()).map(|_| free_address().to_string()).collect();
        Self { namespaces: Vec::new(), loopback }
    }

    /// Everything runs in namespaces of its own. This process is in a namespace after [`SET_UP`].
    pub fn namespaces() -> Self {
        let namespaces: Vec<_> = (0..=ENGINE)
            .map(|place| {
                let number = place + 1;
                let (four, six) = (format!("10.90.{number}"), format!("fd90:{number}"));
                Neighbour::new(&format!("c{place}"), &four, &six)
            })
            .collect();
        for (place, namespace) in namespaces.iter().enumerate() {
            for (bridge, net) in [("nodes", 91), ("engines", 92)] {
                let (number, port) = (place + 1, port(bridge, place));
                let (id, path) = (namespace.id(), namespace.path().display().to_string());
                shell(&format!(
                    "ip link add {port} type veth peer name {bridge} netns {id}
                     ip link set {port} master {bridge}
                     ip link set {port} up
                     nsenter --net={path} ip addr add 10.{net}.0.{number}/24 dev {bridge}
                     nsenter --net={path} ip link set {bridge} up"
                ));
            }
        }
        Self { namespaces, loopback: Vec::new() }
    }

    /// Whether links can go down.
    pub fn has_links(&self) -> bool {
        !self.namespaces.is_empty()
    }

    /// Returns the address at which clients reach a node's proxy.
    pub fn proxy(&self, node: usize) -> String {
        self.address(node, 90, node + 1, "2:3128")
    }

    /// Returns the address at which clients reach a node's admin server.
    pub fn admin(&self, node: usize) -> String {
        self.address(NAMES.len() + node, 90, node + 1, "2:3129")
    }

    /// Returns the address at which other nodes reach a node.
    pub fn peer(&self, node: usize) -> String {
        self.address(2 * NAMES.len() + node, 91, 0, &format!("{}:3130", node + 1))
    }

    fn address(&self, number: usize, net: usize, subnet: usize, end: &str) -> String {
        let otherwise = || format!("10.{net}.{subnet}.{end}");
        self.loopback.get(number).cloned().unwrap_or_else(otherwise)
    }

    /// Returns the address of the origin.
    pub fn origin(&self) -> &'static str {
        if self.has_links() { "10.90.0.1" } else { "127.0.0.1" }
    }

    /// Returns the address at which the test reaches the engine.
    pub fn engine(&self) -> SocketAddr {
        self.address(3 * NAMES.len(), 90, ENGINE + 1, "2:6379").parse().expect("an address")
    }

    /// Returns the address at which nodes reach the engine.
    pub fn engine_for_nodes(&self) -> SocketAddr {
        let end = format!("{}:6379", ENGINE + 1);
        self.address(3 * NAMES.len(), 92, 0, &end).parse().expect("an address")
    }

    /// Returns a command that does the same at a place.
    pub fn command(&self, place: usize, command: Command) -> Command {
        let Some(namespace) = self.namespaces.get(place) else { return command };
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net={}", namespace.path().display())).arg("--");
        inside.arg(command.get_program()).args(command.get_args());
        inside.stdin(Stdio::null()).stdout(Stdio::null());
        inside
    }

    pub fn cut(&self, link: Link, cut: Cut) {
        self.switch(link, cut, true);
    }

    pub fn mend(&self, link: Link, cut: Cut) {
        self.switch(link, cut, false);
    }

    fn switch(&self, link: Link, cut: Cut, is_cut: bool) {
        let (bridge, node) = match link {
            Link::Engine(node) => ("engines", node),
            Link::Nodes(node) => ("nodes", node),
        };
        let port = port(bridge, node);
        match cut {
            Cut::Down => {
                let state = if is_cut { "down" } else { "up" };
                shell(&format!("ip link set {port} {state}"));
            }
            Cut::Silent if is_cut => shell(&format!("ip link set {port} nomaster")),
            Cut::Silent => shell(&format!("ip link set {port} master {bridge}")),
            Cut::HalfOpen => {
                let (place, targets) = match link {
                    Link::Engine(node) => (ENGINE, vec![format!("10.92.0.{}", node + 1)]),
                    Link::Nodes(node) => {
                        let others = (0..NAMES.len()).filter(|other| *other != node);
                        (node, others.map(|other| format!("10.91.0.{}", other + 1)).collect())
                    }
                };
                let path = self.namespaces[place].path().display().to_string();
                let verb = if is_cut { "add" } else { "del" };
                for target in targets {
                    shell(&format!("nsenter --net={path} ip route {verb} blackhole {target}/32"));
                }
            }
        }
    }
}

/// Returns the name of a place's port of a bridge.
fn port(bridge: &str, place: usize) -> String {
    format!("{}{place}", &bridge[..1])
}
