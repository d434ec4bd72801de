//! Chooses a port, and waits until a started proxy returns an object of the origin.

use super::process::Running;
use super::secured::Papers;
use super::{Description, port};
use foxy_base::clock;
use foxy_lab::load::options::{LoadOptions, Mode, Pace, Stop};
use foxy_lab::load::{self};
use foxy_workload::{Object, Objects, Popularity, Workload};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const UNTIL_READY: Duration = Duration::from_secs(60);
/// An object that no workload requests.
const PROBE: u64 = u64::MAX;

pub fn probed() -> String {
    Object { id: PROBE, size: 1, version: 1 }.to_string()
}

pub const ANYWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));

#[derive(Debug, PartialEq, Eq)]
pub enum NotReady {
    PortTaken,
    Failed(String),
}

pub fn free_place(name: &str) -> Result<SocketAddr, String> {
    let listener = TcpListener::bind(ANYWHERE).and_then(|listener| listener.local_addr());
    listener.map_err(|error| format!("no free port for {name}: {error}"))
}

pub fn wait_until_ready(
    running: &mut Running,
    name: &str,
    (description, host): (&Description, SocketAddr),
    interrupted: &AtomicBool,
) -> Result<(), NotReady> {
    let failed = |why: String| Err(NotReady::Failed(why));
    let popularity = Popularity::Window { first: PROBE };
    let probe = Objects { popularity, objects: 1, size: 1, warm_up: false };
    let workload = Workload::find("zipf").expect("it is one of ours").with_objects(|_| probe);
    let tls = match description.papers.as_ref().map(Papers::trust).transpose() {
        Ok(trust) => trust,
        Err(error) => return failed(format!("{name}: no authority: {error}")),
    };
    let probe = LoadOptions {
        pace: Pace::Closed,
        clients: 1,
        stop: Stop::Requests(1),
        time_limit: Duration::from_secs(2),
        tls,
        ..LoadOptions::new(description.listen, Mode::Reverse { host: host.to_string() }, workload)
    };
    let begun = clock::monotonic();
    while clock::monotonic().since(begun) < UNTIL_READY {
        if interrupted.load(Relaxed) {
            return failed(format!("{name}: stopped while it came up"));
        }
        if port::is_anothers(description.listen, running) {
            return Err(NotReady::PortTaken);
        }
        if let Some(status) = running.ended() {
            return failed(format!("{name} did not come up ({status}): {}", running.last_words()));
        }
        match load::run(&probe, &mut |_| {}) {
            Err(error) => return failed(format!("{name}: no load: {error}")),
            Ok(report) if report.answers == 1 && port::is_anothers(description.listen, running) => {
                return Err(NotReady::PortTaken);
            }
            Ok(report) if report.answers == 1 => return Ok(()),
            Ok(_) => {}
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let waited = UNTIL_READY.as_secs();
    failed(format!("{name} gave nothing within {waited} s: {}", running.last_words()))
}
