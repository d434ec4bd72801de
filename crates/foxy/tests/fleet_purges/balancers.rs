//! Tests the configurations of `packaging/balancers` with real balancers in front of a fleet.

use crate::fleet::{Fleet, NAMES};
use crate::support::{Response, not_run, request};
use crate::versions::{Versions, version};
use foxy_testkit::ports::free_address;
use foxy_testkit::wait::until;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tempfile::TempDir;

#[derive(Clone, Copy, Debug)]
enum BalancerKind {
    Envoy,
    Haproxy,
    Nginx,
}

/// A running balancer. Drop kills it.
struct Balancer {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.child.kill().expect("a running balancer");
        self.child.wait().expect("a child");
    }
}

impl BalancerKind {
    /// Starts a balancer with its configuration in `packaging/balancers`, in front of all nodes.
    /// Returns `None` if the machine has no such program.
    fn start(self, fleet: &Fleet) -> Option<Balancer> {
        let program = self.program()?;
        let (folder, address) = (tempfile::tempdir().expect("a folder"), free_address());
        let path = folder.path().join(self.file());
        std::fs::write(&path, self.configuration(fleet, address, folder.path())).expect("written");
        let mut command = Command::new(program);
        match self {
            Self::Envoy => command.args(["--concurrency", "2", "--disable-hot-restart", "-c"]),
            Self::Haproxy => command.args(["-db", "-f"]),
            Self::Nginx => command.arg("-p").arg(folder.path()).args(["-e", "errors", "-c"]),
        };
        command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the balancer starts");
        until("the start of the balancer", || {
            assert!(child.try_wait().expect("a child").is_none(), "{self:?} did not start");
            TcpStream::connect(address).ok()
        });
        Some(Balancer { child, address, _folder: folder })
    }

    fn program(self) -> Option<PathBuf> {
        let program = match self {
            Self::Envoy => {
                let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("tools");
                tools.join("envoy/envoy/_bin/envoy")
            }
            Self::Haproxy => "/usr/sbin/haproxy".into(),
            Self::Nginx => "/usr/sbin/nginx".into(),
        };
        if !program.exists() {
            let hint = "the machine does not have it; `cargo xtask tools` installs it";
            not_run(&format!("a fleet behind {self:?}"), hint);
            return None;
        }
        Some(program)
    }

    const fn file(self) -> &'static str {
        match self {
            Self::Envoy => "envoy.yaml",
            Self::Haproxy => "haproxy.cfg",
            Self::Nginx => "nginx.conf",
        }
    }

    /// Returns the configuration in `packaging/balancers` with the addresses of this test.
    fn configuration(self, fleet: &Fleet, listen: SocketAddr, folder: &Path) -> String {
        let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/balancers");
        let text = std::fs::read_to_string(packaging.join(self.file())).expect("a file");
        let [listen_before, listen_now] = match self {
            Self::Envoy => [socket("0.0.0.0:8080"), socket(&listen.to_string())],
            Self::Haproxy => ["bind :8080".to_owned(), format!("bind {listen}")],
            Self::Nginx => ["listen 8080".to_owned(), format!("listen {listen}")],
        };
        let mut text = replaced(&text, &listen_before, &listen_now);
        for number in 0..NAMES.len() {
            let (before, now) = (format!("10.0.0.{}:3128", number + 1), fleet.ground.proxy(number));
            text = match self {
                Self::Envoy => replaced(&text, &socket(&before), &socket(&now)),
                Self::Haproxy | Self::Nginx => replaced(&text, &before, &now),
            };
        }
        match self {
            Self::Envoy | Self::Haproxy => text,
            Self::Nginx => nginx_main(&text, folder),
        }
    }
}

/// Returns an address as Envoy writes it.
fn socket(address: &str) -> String {
    let (host, port) = address.split_once(':').expect("a port");
    format!("{{ address: {host}, port_value: {port} }}")
}

fn replaced(text: &str, before: &str, now: &str) -> String {
    assert_eq!(text.matches(before).count(), 1, "{before} in {text}");
    text.replace(before, now)
}

/// Returns a main configuration of nginx around a file for `conf.d`. All files are in `folder`.
fn nginx_main(included: &str, folder: &Path) -> String {
    let folder = folder.display();
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {folder}/{kind};\n"))
        .concat();
    format!(
        "daemon off; master_process off; pid {folder}/pid;\nevents {{}}\n\
         http {{ access_log off;\n{paths}{included}\n}}\n"
    )
}

impl Balancer {
    fn get(&self, path: &str) -> Response {
        let text = format!("GET {path} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n");
        request(self.address, &text)
    }

    /// Requests each path. Returns the node that each request reached.
    fn nodes_of(&self, paths: &[String]) -> BTreeMap<String, String> {
        let node = |path: &String| {
            let answer = self.get(path);
            assert_eq!((answer.status, version(&answer)), (200, Some(0)), "{path}: {answer:?}");
            // The last cache of the list is the nearest to the client.
            let last = answer.cache_status().rsplit(", ").next().expect("a part");
            (path.clone(), last.split(';').next().expect("a name").to_owned())
        };
        paths.iter().map(node).collect()
    }

    /// Returns the node that each path reached in three rounds in a row. On a busy machine, a check
    /// of a node's health may fail, and the balancer then uses another node for a while.
    fn settled_nodes_of(&self, paths: &[String]) -> BTreeMap<String, String> {
        until("three equal rounds", || {
            let first = self.nodes_of(paths);
            (0..2).all(|_| self.nodes_of(paths) == first).then_some(first)
        })
    }
}

/// Requests the paths in turn until `stop`. Every request must succeed.
fn request_until(stop: &AtomicBool, balancer: &Balancer, paths: &[String], count: &AtomicU64) {
    for path in paths.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let answer = balancer.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The balancer sends each URL to the same node. When a node dies, no request fails, and the other
/// nodes keep their URLs.
fn a_fleet_stands_behind(kind: BalancerKind) {
    let origin = Versions::start();
    let address = origin.url("");
    let more = ["--origin", &address, "--forwarded-from", "127.0.0.0/8"];
    let mut fleet = Fleet::without_engine(&more);
    let Some(balancer) = kind.start(&fleet) else { return };
    let paths: Vec<String> = (0..24).map(|number| format!("/{number}?query={number}")).collect();
    let before = balancer.settled_nodes_of(&paths);
    let used: BTreeSet<_> = before.values().collect();
    assert_eq!(used.len(), NAMES.len(), "{before:?}");

    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| request_until(&stop, &balancer, &paths, &count)))
            .collect();
        let wait_for = |more: u64| {
            let wanted = count.load(Ordering::Relaxed) + more;
            until("more requests, all with success", || {
                let failed = clients.iter().any(|client| client.is_finished());
                (failed || count.load(Ordering::Relaxed) >= wanted).then_some(())
            });
        };
        wait_for(100);
        fleet.kill(1);
        wait_for(200);
        stop.store(true, Ordering::Relaxed);
    });

    let after = balancer.settled_nodes_of(&paths);
    for (path, node) in &before {
        let now = &after[path];
        let may_be = if node == "foxy-b" { now != "foxy-b" } else { now == node };
        assert!(may_be, "{path} went from {node} to {now}");
    }
}

#[test]
fn a_fleet_stands_behind_envoy() {
    a_fleet_stands_behind(BalancerKind::Envoy);
}

#[test]
fn a_fleet_stands_behind_haproxy() {
    a_fleet_stands_behind(BalancerKind::Haproxy);
}

#[test]
fn a_fleet_stands_behind_nginx() {
    a_fleet_stands_behind(BalancerKind::Nginx);
}
