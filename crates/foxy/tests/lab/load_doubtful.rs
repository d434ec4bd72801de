//! Tests the exit codes and records of `foxy load` with proxies that it cannot trust: they leave
//! out information, or stop answering.

use crate::support::commands::{Serving, command, ended, records, value};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Starts a proxy that forwards `exchanges` requests, each on its own connection. `changed`
/// modifies each request. The proxy then still accepts connections, but answers nothing.
fn proxy(origin: &str, exchanges: usize, changed: fn(String) -> String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (address, origin) = (listener.local_addr().expect("bound").to_string(), origin.to_owned());
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for (number, client) in listener.incoming().flatten().enumerate() {
            if number >= exchanges {
                silent.push(client);
                continue;
            }
            let _client_went_away = carry(client, &origin, changed);
        }
    });
    address
}

fn carry(
    mut client: TcpStream,
    origin: &str,
    changed: fn(String) -> String,
) -> std::io::Result<u64> {
    let mut request = [0; 4096];
    let length = client.read(&mut request)?;
    let mut server = TcpStream::connect(origin)?;
    server
        .write_all(changed(String::from_utf8_lossy(&request[..length]).into_owned()).as_bytes())?;
    std::io::copy(&mut server, &mut client)
}

/// Returns the arguments for a load on `proxy`, with a new connection for each request.
fn load<'a>(proxy: &'a str, origin: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let load =
        ["load", "--proxy", proxy, "--origin", origin, "--no-warm-up", "--protocol", "1.1-close"];
    [&load[..], more].concat()
}

#[test]
fn a_proxy_that_falls_silent_makes_the_run_incomplete_in_time() {
    let (origin, folder) = (Serving::origin(), tempfile::tempdir().expect("a folder"));
    let file = folder.path().join("run.jsonl");
    for (more, expected) in [
        (&["--clients", "2"][..], "; the proxy gave no correct answer after the first 0."),
        (
            &["--clients", "4", "--rate", "100"][..],
            "; the proxy gave no correct answer after the first 0.",
        ),
    ] {
        let proxy = proxy(&origin.address, 20, |request| request);
        let times = ["--seconds", "3", "--time-limit", "2s"];
        let began = foxy_base::clock::monotonic();
        let mut command = command(&load(&proxy, &origin.address, &[&times, more].concat()));
        let (code, _, err) = ended(command.arg("--json").arg(&file));
        let took = foxy_base::clock::monotonic().since(began);
        assert!(took.as_secs() < 15, "{more:?}: {took:?}");
        assert_eq!(code, Some(3), "{err}");
        assert!(err.contains(expected), "{err}");
        let records = records(&file);
        assert_eq!(value(&records, "requests"), 20.0);
        assert_eq!(records.last().map(|record| &record["held"]), Some(&false.into()));
        assert!(records.iter().any(|record| record["kind"] == "failed-run"), "{records:?}");
    }
}

#[test]
fn the_hit_ratio_of_a_proxy_that_drops_the_number_of_a_request_is_not_known() {
    let origin = Serving::origin();
    let proxy =
        proxy(&origin.address, usize::MAX, |request| request.replace("X-Foxy-Request", "X-Other"));
    let bar = ["--requests", "20", "--clients", "1", "--fail-if", "hit_ratio<0.9"];
    let (code, out, err) = ended(&mut command(&load(&proxy, &origin.address, &bar)));
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(err.contains("20 of 20 answers lack the field X-Foxy-Request"), "{err}");
    assert!(err.contains("--fail-if hit_ratio<0.9: not measured; the measures are"), "{err}");
    let row = out.lines().find(|line| line.starts_with("hit_ratio ")).expect("a row");
    assert_eq!(row.split_whitespace().nth(1), Some("-"), "{out}");
}
