//! Tests that two `foxy run` at the same time share one store, and that each outlives the other.

use crate::run::{Waiting, fetch, foxy_run};
use crate::support::Origin;
use crate::support::commands::signal;
use foxy_testkit::certificates::{TestAuthority, client_trusting};
use foxy_testkit::client::exchange;
use foxy_testkit::http::{ok, read_head};
use foxy_testkit::origin::TestOrigin;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, StreamOwned};
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

fn start(folder: &Path, more: &[&str]) -> Waiting {
    let script = "echo $http_proxy $SSL_CERT_FILE; read line; exit 0";
    Waiting::start(foxy_run(folder, more, script))
}

/// Returns the URL of the proxy of a run.
fn proxy(run: &Waiting) -> &str {
    run.said.split(' ').next().expect("a URL")
}

#[test]
fn two_runs_share_one_fetch_and_the_second_outlives_the_first() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let (first, second) = (start(folder.path(), &[]), start(folder.path(), &[]));
    fetch(&origin, proxy(&first), "x");
    fetch(&origin, proxy(&second), "x");
    assert_eq!(origin.asked(), 1, "one fetch for both");
    fetch(&origin, proxy(&second), "y");
    let (code, reports) = first.end();
    assert_eq!(code, Some(0), "{reports}");
    for page in ["x", "y", "z"] {
        fetch(&origin, proxy(&second), page);
    }
    let (code, reports) = second.end();
    assert_eq!(code, Some(0), "{reports}");
    assert!(reports.starts_with("foxy: shares the store of the `foxy run` "), "{reports}");
    assert!(reports.contains("; 2 of them used the store of another `foxy run`"), "{reports}");
    let third = start(folder.path(), &[]);
    fetch(&origin, proxy(&third), "y");
    assert!(third.end().1.contains("1 request, 1 of them from the cache"), "the store has it");
    assert!(!folder.path().join(".cache/foxy-run-2").exists());
}

#[test]
fn a_run_outlives_a_killed_run_whose_store_it_shares() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let (first, second) = (start(folder.path(), &[]), start(folder.path(), &[]));
    fetch(&origin, proxy(&second), "x");
    signal(first.id(), "KILL");
    let _killed = first.end();
    fetch(&origin, proxy(&second), "y");
    assert_eq!(start(folder.path(), &[]).end().0, Some(0), "the old offer disturbs no later run");
    assert_eq!(second.end().0, Some(0));
}

/// Requests a page over HTTPS through a run, as its command would.
fn fetch_https(origin: &TestOrigin, run: &Waiting) {
    let (proxy, bundle) = run.said.split_once(' ').expect("a URL and a file");
    let mut stream =
        TcpStream::connect(proxy.trim_start_matches("http://")).expect("the proxy listens");
    let host = origin.address;
    write!(stream, "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("sent");
    assert!(read_head(&mut stream).is_some_and(|head| head.starts_with("HTTP/1.1 200")));
    let certificates = CertificateDer::pem_file_iter(bundle).expect("PEM");
    let config = client_trusting(certificates.map(|it| it.expect("a certificate")), None);
    let name = ServerName::from(host.ip());
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    let text = format!("GET /x HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = exchange(StreamOwned::new(session, stream), &text);
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("page"), "{answer}");
}

#[test]
fn two_runs_share_one_fetch_over_https() {
    let (folder, authority) = (tempfile::tempdir().expect("a folder"), TestAuthority::new());
    let server = authority.sign(&["127.0.0.1"]).server();
    let page = |_: &str, _| ok("Cache-Control: max-age=3600\r\n", b"page");
    let origin = TestOrigin::start_tls(server, page);
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, authority.pem()).expect("written");
    let port = origin.address.port().to_string();
    let file = file.to_str().expect("UTF-8");
    let flags = ["--origin-ca", file, "--intercept", "127.0.0.1", "--connect-port", &port];
    let (first, second) = (start(folder.path(), &flags), start(folder.path(), &flags));
    fetch_https(&origin, &second);
    fetch_https(&origin, &first);
    assert_eq!(origin.requests(), 1, "one fetch for both");
    assert_eq!(first.end().0, Some(0));
    fetch_https(&origin, &second);
    let (code, reports) = second.end();
    assert_eq!(code, Some(0), "{reports}");
    assert!(reports.contains("; 1 of them used the store of another `foxy run`"), "{reports}");
}
