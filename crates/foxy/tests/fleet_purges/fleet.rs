//! A fleet of real foxy nodes, each with its own store and certificate.

use crate::engine::EngineServer;
use crate::ground::Ground;
use crate::support::{Foxy, Response, command, request, write_secret};
use foxy_testkit::wait::until;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

pub const NAMES: [&str; 3] = ["a", "b", "c"];
/// The secret word of the admin servers.
pub const TOKEN: &str = "the-word-of-the-fleet";

pub struct Fleet {
    folder: TempDir,
    engine: Option<String>,
    pub ground: Arc<Ground>,
    more: Vec<String>,
    /// Whether the configurations list the members.
    is_listed: bool,
    /// The port for other nodes, if the nodes have their addresses as names.
    port: Option<u16>,
    pub nodes: Vec<Option<Foxy>>,
}

impl Fleet {
    /// Starts three nodes on loopback, and waits until each has a lease.
    pub fn start(engine: &EngineServer) -> Self {
        Self::start_with(Arc::new(Ground::loopback()), engine.url(), &[])
    }

    /// Starts three nodes with this URL of the engine and with more arguments.
    pub fn start_with(ground: Arc<Ground>, engine: String, more: &[&str]) -> Self {
        let fleet = Self::begin_all(ground, Some(engine), more);
        fleet.wait_for_leases();
        fleet
    }

    /// Starts three nodes on loopback without an engine and with more arguments.
    pub fn without_engine(more: &[&str]) -> Self {
        Self::begin_all(Arc::new(Ground::loopback()), None, more)
    }

    fn begin_all(ground: Arc<Ground>, engine: Option<String>, more: &[&str]) -> Self {
        let mut fleet = Self::new(ground, engine, more);
        (0..NAMES.len()).for_each(|node| fleet.begin(node));
        fleet
    }

    /// Prepares nodes on loopback whose configurations list no members.
    pub fn unlisted(engine: Option<String>, more: &[&str]) -> Self {
        Self { is_listed: false, ..Self::new(Arc::new(Ground::loopback()), engine, more) }
    }

    /// Prepares nodes at 127.0.0.2 and so on. Their names are their addresses with hyphens.
    pub fn at_addresses(port: u16, more: &[&str]) -> Self {
        Self { port: Some(port), ..Self::unlisted(None, more) }
    }

    fn new(ground: Arc<Ground>, engine: Option<String>, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        write_certificates(folder.path());
        let more = more.iter().map(|&word| word.to_owned()).collect();
        let nodes = NAMES.map(|_| None).into_iter().collect();
        Self { folder, engine, ground, more, is_listed: true, port: None, nodes }
    }

    /// Returns the name of a node, and its address for other nodes.
    fn identity(&self, number: usize) -> (String, String) {
        let last = number + 2;
        match self.port {
            Some(port) => (format!("127-0-0-{last}"), format!("127.0.0.{last}:{port}")),
            None => (NAMES[number].to_owned(), self.ground.peer(number)),
        }
    }

    /// Starts a node, which need not have a lease yet.
    pub fn begin(&mut self, number: usize) {
        self.begin_with(number, None);
    }

    /// Starts a node. Its list of members has another weight for the member `heavier`.
    pub fn begin_with(&mut self, number: usize, heavier: Option<usize>) {
        let (folder, ground) = (self.folder.path(), &self.ground);
        let file = |name: &str| folder.join(name).display().to_string();
        let (name, peer) = self.identity(number);
        let (certificate, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        let (authority, token) = (file("ca.pem"), file("token"));
        let (proxy, admin) = (ground.proxy(number), ground.admin(number));
        let mut more = vec!["--fleet-node", &name];
        let engine = self.engine.as_deref();
        more.extend(engine.into_iter().flat_map(|engine| ["--fleet-engine", engine]));
        more.extend(["--fleet-certificate", &certificate, "--fleet-key", &key]);
        more.extend(["--fleet-ca", &authority, "--fleet-listen", &peer]);
        more.extend(["--purge-from", "127.0.0.0/8", "--purge-from", "10.90.0.0/16"]);
        more.extend(["--allow-destination", "10.90.0.0/15"]);
        if ground.has_links() {
            more.extend(["--admin-token-file", &token]);
        }
        more.extend(["--listen", &proxy, "--admin", &admin, "--size", "64M"]);
        more.extend(["--allow-client", "127.0.0.0/8", "--allow-client", "10.90.0.0/16"]);
        more.extend(["--fleet-ramp", "0s"]);
        more.extend(self.more.iter().map(String::as_str));
        let configuration = file(&format!("{name}.toml"));
        if self.is_listed {
            self.write_members(number, &[0, 1, 2], heavier);
            more.extend(["--config", &configuration]);
        }
        let start = command(&folder.join(&name), &more);
        self.nodes[number] = Some(Foxy::ready(ground.command(number, start)));
    }

    /// Writes the configuration of a node: its list of members, with another weight for `heavier`.
    fn write_members(&self, number: usize, members: &[usize], heavier: Option<usize>) {
        let member = |&node: &usize| {
            let weight = if heavier == Some(node) { 2 } else { 1 };
            format!("\"{} https://{} weight={weight}\",", NAMES[node], self.ground.peer(node))
        };
        let members: String = members.iter().map(member).collect();
        let path = self.folder.path().join(format!("{}.toml", NAMES[number]));
        std::fs::write(path, format!("[fleet]\nmembers = [{members}]\n")).expect("written");
    }

    /// Gives a running node another list of members. Waits until the node reports `outcome`.
    pub fn reload_members(&mut self, number: usize, members: &[usize], outcome: &str) {
        self.write_members(number, members, None);
        let node = self.nodes[number].as_mut().expect("a running node");
        node.signal("HUP");
        node.report_containing(outcome);
    }

    /// Replaces the files of all certificates, and of their authority.
    pub fn write_new_certificates(&self) {
        write_certificates(self.folder.path());
    }

    /// Makes the certificate's file of a node unusable.
    pub fn spoil_certificate(&self, number: usize) {
        let path = self.folder.path().join(format!("{}.pem", NAMES[number]));
        std::fs::write(path, "nothing").expect("written");
    }

    /// Waits until the first node reports this text.
    pub fn first_report(&mut self, part: &str) {
        self.nodes[0].as_mut().expect("a running node").report_containing(part);
    }

    /// Returns a fact about a node, as the first node shows it.
    pub fn fact(&self, number: usize, name: &str) -> bool {
        let body = self.node(0).admin("/data/fleet").body;
        let status: Value = serde_json::from_str(&body).expect("JSON");
        status["nodes"][number][name].as_bool().expect("a fact")
    }

    pub fn node(&self, number: usize) -> &Foxy {
        self.nodes[number].as_ref().expect("a running node")
    }

    /// Kills a node with SIGKILL.
    pub fn kill(&mut self, number: usize) {
        if let Some(node) = self.nodes[number].take() {
            node.kill();
        }
    }

    pub fn has_lease(&self, number: usize) -> bool {
        self.nodes[number]
            .as_ref()
            .is_some_and(|node| node.metric::<f64>("foxy_fleet_lease_seconds") > 0.0)
    }

    pub fn wait_for_leases(&self) {
        for number in (0..NAMES.len()).filter(|number| self.nodes[*number].is_some()) {
            until("a lease", || self.has_lease(number).then_some(()));
        }
    }

    /// Purges a URL at a node.
    pub fn purge(&self, number: usize, url: &str) -> Response {
        let host = url.trim_start_matches("http://").split('/').next().expect("a host");
        let text = format!("PURGE {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        request(self.node(number).proxy, &text)
    }

    /// Purges a URL at a node until the fleet acknowledges the purge. The fleet refuses purges while
    /// its engine is slower than a second, as on a busy machine. Returns the number of refusals.
    pub fn purge_acknowledged(&self, number: usize, url: &str) -> u64 {
        let mut refused = 0;
        until("an acknowledged purge", || {
            let answer = self.purge(number, url);
            let is_refused = answer.status == 503;
            assert!(answer.status == 200 || is_refused, "{answer:?}");
            refused += u64::from(is_refused);
            (!is_refused).then_some(())
        });
        refused
    }

    /// Requests a URL at each running node. Returns the values of `Cache-Status`.
    pub fn get_all(&self, url: &str) -> Vec<String> {
        let running = self.nodes.iter().flatten();
        running.map(|node| node.get(url).cache_status().to_owned()).collect()
    }

    /// Requests a URL at each node until the owner answers all nodes from its cache.
    pub fn warm(&self, url: &str) {
        until("hits at all nodes", || {
            self.get_all(url).iter().all(|status| status.contains("; hit")).then_some(())
        });
    }
}

fn write_certificates(folder: &Path) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("sound");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).expect("signed");
    std::fs::write(folder.join("ca.pem"), authority.pem()).expect("written");
    write_secret(&folder.join("token"), TOKEN);
    let issuer = Issuer::new(params, key);
    for name in NAMES.into_iter().chain(["127-0-0-2", "127-0-0-3"]) {
        let key = KeyPair::generate().expect("a key");
        let names = vec![name.to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("sound");
        let certificate = params.signed_by(&key, &issuer).expect("signed");
        std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("written");
        write_secret(&folder.join(format!("{name}.key")), &key.serialize_pem());
    }
}
