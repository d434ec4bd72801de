//! Chooses a port for a proxy, and waits until the started proxy returns an object of the origin.
//! Notices if another program took the port first.

use super::Description;
use super::process::Running;
use super::secured::Papers;
use foxy_base::clock;
use foxy_lab::load;
use foxy_lab::load::options::{LoadOptions, Mode, Pace, Stop};
use foxy_workload::{Object, Objects, Popularity, Workload};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const UNTIL_READY: Duration = Duration::from_secs(60);
/// Number of a test object that no workload requests.
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
    description: &Description,
    host: SocketAddr,
    interrupted: &AtomicBool,
) -> Result<(), NotReady> {
    let failed = |why: String| Err(NotReady::Failed(why));
    let popularity = Popularity::Window { first: PROBE };
    let probe = Objects { popularity, objects: 1, size: 1, warm_up: false };
    let workload = Workload::find("zipf").expect("it is one of ours").with_objects(|_| probe);
    let tls = match description.papers.as_ref().map(Papers::trust).transpose() {
        Ok(trust) => trust,
        Err(error) => {
            return failed(format!("{name}: the certificate authority is unusable: {error}"));
        }
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
            return failed(format!("{name}: stopped while it started"));
        }
        if is_anothers(description.listen, running) {
            return Err(NotReady::PortTaken);
        }
        if let Some(status) = running.ended() {
            return failed(format!("{name} did not start ({status}): {}", running.last_words()));
        }
        match load::run(&probe, &mut |_| {}) {
            Err(error) => return failed(format!("{name}: cannot send the load: {error}")),
            Ok(report) if report.answers == 1 && is_anothers(description.listen, running) => {
                return Err(NotReady::PortTaken);
            }
            Ok(report) if report.answers == 1 => return Ok(()),
            Ok(_) => {}
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let waited = UNTIL_READY.as_secs();
    failed(format!("{name} did not answer within {waited} s: {}", running.last_words()))
}

const LISTENING: &str = "0A";

pub fn is_anothers(place: SocketAddr, running: &mut Running) -> bool {
    if running.ended().is_some() {
        return is_in_use(place) || says_in_use(&running.last_words());
    }
    let Some(own) = sockets(&running.processes()) else { return false };
    listeners(place).iter().any(|socket| !own.contains(socket))
}

fn is_in_use(place: SocketAddr) -> bool {
    TcpListener::bind(place).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn says_in_use(words: &str) -> bool {
    words.to_lowercase().contains("address already in use")
}

fn listeners(place: SocketAddr) -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    listeners_in(&table, place)
}

fn listeners_in(table: &str, place: SocketAddr) -> Vec<String> {
    let IpAddr::V4(ip) = place.ip() else { return Vec::new() };
    let local = format!("{:08X}:{:04X}", u32::from_le_bytes(ip.octets()), place.port());
    let number = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (found, state) = (fields.next()?, fields.nth(1)?);
        (found == local && state == LISTENING).then(|| fields.nth(5).map(str::to_owned))?
    };
    table.lines().skip(1).filter_map(number).collect()
}

/// Returns the socket inodes of these processes. Returns `None` if this user may not inspect one of
/// the processes.
fn sockets(processes: &[u32]) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for process in processes {
        for entry in std::fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten() {
            let target = match std::fs::read_link(entry.path()) {
                Ok(target) => target,
                // The process closed this file after the listing of its open files.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(_) => return None,
            };
            let number = target
                .to_str()
                .and_then(|target| target.strip_prefix("socket:[")?.strip_suffix(']'));
            found.extend(number.map(str::to_owned));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_socket_that_listens_at_a_place_is_held_by_its_process() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let place = listener.local_addr().expect("an address");
        let own = sockets(&[std::process::id()]).expect("its own may be looked at");
        let found = listeners(place);
        assert_eq!(found.len(), 1, "{place}");
        assert!(own.contains(&found[0]), "{found:?}");
        assert!(is_in_use(place));
        drop(listener);
        // A child process of another test holds a copy of the socket until it starts its own
        // program. So the test waits.
        let gone = (0..10_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            !listeners(place).contains(&found[0])
        });
        assert!(gone, "{place} is still listened at");
    }

    #[test]
    fn only_listening_sockets_of_the_place_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 4711 1 0 100 0 0 10 0\n\
            1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000 0 4712 1 0 20 4 30 10 -1\n\
            2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 4713 1 0 100 0 0 10 0\n";
        let place = |text: &str| text.parse().expect("an address");
        assert_eq!(listeners_in(table, place("127.0.0.1:8080")), ["4711"]);
        assert_eq!(listeners_in(table, place("127.0.0.1:8082")), Vec::<String>::new());
    }

    #[test]
    fn each_proxys_words_for_an_address_in_use_are_known() {
        for words in [
            "nginx: [emerg] bind() to 127.0.0.1:80 failed (98: Address already in use)",
            "cannot listen on 127.0.0.1:80 (--listen): Address already in use (os error 98)",
            "(98)Address already in use: AH00072: make_sock: could not bind to address 127.0.0.1:80",
        ] {
            assert!(says_in_use(words), "{words}");
        }
        assert!(!says_in_use("unknown directive"));
    }
}
