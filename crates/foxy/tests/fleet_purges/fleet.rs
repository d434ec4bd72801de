//! A fleet of real foxy nodes, each with its own store and certificate.

use crate::redis::Redis;
use crate::support::{Foxy, Response, request, write_secret};
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::ports::free_address;
use foxy_testkit::wait::until;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

pub const NAMES: [&str; 3] = ["a", "b", "c"];

/// An origin whose objects have versions. The answer to a request has the newest version.
pub struct Versions {
    origin: TestOrigin,
    versions: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Versions {
    pub fn start() -> Self {
        let versions = Arc::<Mutex<BTreeMap<String, u64>>>::default();
        let known = Arc::clone(&versions);
        let origin = TestOrigin::start(move |head, _| {
            let path = head.split(' ').nth(1).unwrap_or("").to_owned();
            let version = known.lock().expect("sound").get(&path).copied().unwrap_or(0);
            let tag = format!("\"{version}\"");
            let lines = format!("Cache-Control: max-age=3600\r\nETag: {tag}\r\n");
            match header(head, "if-none-match") {
                Some(asked) if asked == tag => {
                    format!("HTTP/1.1 304 Not Modified\r\n{lines}\r\n").into_bytes()
                }
                _ => ok(&lines, format!("version {version}").as_bytes()),
            }
        });
        Self { origin, versions }
    }

    pub fn url(&self, path: &str) -> String {
        self.origin.url(path)
    }

    /// Makes a new version of an object. Returns its number.
    pub fn change(&self, path: &str) -> u64 {
        let mut versions = self.versions.lock().expect("sound");
        let version = versions.entry(path.to_owned()).or_default();
        *version += 1;
        *version
    }
}

/// Returns the version in a body.
pub fn version(response: &Response) -> Option<u64> {
    response.body.strip_prefix("version ")?.parse().ok()
}

pub struct Fleet {
    folder: TempDir,
    engine: String,
    members: Vec<String>,
    pub nodes: Vec<Option<Foxy>>,
}

impl Fleet {
    /// Starts three nodes, and waits until each has a lease.
    pub fn start(redis: &Redis) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        write_certificates(folder.path());
        let member = |name: &&str| format!("{name} https://{}", free_address());
        let members = NAMES.iter().map(member).collect();
        let nodes = NAMES.map(|_| None).into_iter().collect();
        let mut fleet = Self { folder, engine: redis.url(), members, nodes };
        (0..NAMES.len()).for_each(|node| fleet.begin(node));
        fleet.wait_for_leases();
        fleet
    }

    /// Starts a node, which need not have a lease yet.
    pub fn begin(&mut self, number: usize) {
        let folder = self.folder.path();
        let file = |name: &str| folder.join(name).display().to_string();
        let name = NAMES[number];
        let address = self.members[number].rsplit("https://").next().expect("an address");
        let (certificate, key) = (file(&format!("{name}.pem")), file(&format!("{name}.key")));
        let authority = file("ca.pem");
        let mut more = vec!["--fleet-node", name, "--fleet-engine", &self.engine];
        more.extend(["--fleet-certificate", &certificate, "--fleet-key", &key]);
        more.extend(["--fleet-ca", &authority, "--fleet-listen", address]);
        more.extend(["--purge-from", "127.0.0.0/8"]);
        for member in &self.members {
            more.extend(["--fleet-member", member]);
        }
        self.nodes[number] = Some(Foxy::start(&folder.join(name), &more));
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
    let issuer = Issuer::new(params, key);
    for name in NAMES {
        let key = KeyPair::generate().expect("a key");
        let names = vec![name.to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("sound");
        let certificate = params.signed_by(&key, &issuer).expect("signed");
        std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).expect("written");
        write_secret(&folder.join(format!("{name}.key")), &key.serialize_pem());
    }
}
