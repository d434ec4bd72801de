//! Tests that a replaced or invalidated response is not served after a kill, even if the kill comes
//! right after the answer that replaced it.

use crate::support::{Foxy, Response};
use foxy_testkit::http::{ok, read_head};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::PATIENCE;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

const SCHEMES: [&str; 4] = ["webcosm", "stream-packetizer", "ufs", "coss"];

/// An origin that puts a number in each response. Responses stay fresh for an hour. The origin
/// never completes a response to a reload.
struct Numbering {
    address: SocketAddr,
}

impl Numbering {
    fn start() -> Self {
        Self { address: TestOrigin::start(answer).address }
    }

    fn request(&self, method: &str, lines: &str) -> String {
        let address = self.address;
        format!(
            "{method} http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\
             Connection: close\r\n{lines}\r\n"
        )
    }
}

fn answer(request: &str, number: usize) -> Vec<u8> {
    let lines = format!("Cache-Control: max-age=3600\r\nNumber: {}\r\n", number + 1);
    let mut answer = ok(&lines, b"all of it");
    if request.contains("no-cache") {
        answer.truncate(answer.len() - 6);
    }
    answer
}

/// Stores a page on disk, and then restarts foxy, so that the page is only in the store.
fn with_a_stored_page(folder: &std::path::Path, scheme: &str, origin: &Numbering) -> Foxy {
    let flags = ["--scheme", scheme];
    let foxy = Foxy::start(folder, &flags);
    assert_eq!(
        crate::support::request(foxy.proxy, &origin.request("GET", "")).fields["number"],
        "1"
    );
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    let foxy = Foxy::start(folder, &flags);
    assert!(get(&foxy, origin).cache_status().contains("foxy; hit"), "{scheme}");
    foxy
}

fn get(foxy: &Foxy, origin: &Numbering) -> Response {
    crate::support::request(foxy.proxy, &origin.request("GET", ""))
}

fn is_newer_after_a_kill(foxy: Foxy, folder: &std::path::Path, scheme: &str, origin: &Numbering) {
    foxy.kill();
    let foxy = Foxy::start(folder, &["--scheme", scheme]);
    let response = get(&foxy, origin);
    assert_eq!(response.fields["number"], "3", "{scheme}: {response:?}");
}

#[test]
fn what_an_unsafe_request_invalidated_stays_away_from_the_answer_on() {
    for scheme in SCHEMES {
        let folder = tempfile::tempdir().expect("a folder");
        let origin = Numbering::start();
        let foxy = with_a_stored_page(folder.path(), scheme, &origin);
        let answer =
            crate::support::request(foxy.proxy, &origin.request("POST", "Content-Length: 0\r\n"));
        assert_eq!(answer.fields["number"], "2");
        is_newer_after_a_kill(foxy, folder.path(), scheme, &origin);
    }
}

#[test]
fn what_a_reload_found_a_newer_one_of_stays_away_from_the_head_on() {
    for scheme in SCHEMES {
        let folder = tempfile::tempdir().expect("a folder");
        let origin = Numbering::start();
        let foxy = with_a_stored_page(folder.path(), scheme, &origin);
        let mut client = TcpStream::connect(foxy.proxy).expect("connected");
        client.set_read_timeout(Some(PATIENCE)).expect("set");
        client
            .write_all(origin.request("GET", "Cache-Control: no-cache\r\n").as_bytes())
            .expect("sent");
        let head = read_head(&mut client).expect("a head");
        assert!(head.contains("Number: 2\r\n") && head.contains("; stored"), "{head}");
        is_newer_after_a_kill(foxy, folder.path(), scheme, &origin);
    }
}

/// Starts a foxy for each entry of `uses`, one after another, with the flags of the entry. The
/// first foxy stores the page. Each foxy between the first and the last changes the page with a
/// POST. The last foxy must not serve the response of the first.
fn does_not_come_back(folder: &std::path::Path, uses: &[&[&str]]) {
    let origin = Numbering::start();
    for (number, flags) in uses.iter().enumerate() {
        let foxy = Foxy::start(folder, flags);
        let found = get(&foxy, &origin);
        let hit = found.cache_status().contains("foxy; hit");
        assert!(!hit || found.fields["number"] == "1", "{flags:?}: {found:?}");
        if number + 1 == uses.len() {
            assert!(!hit, "{flags:?}: {found:?}");
        } else if number > 0 {
            crate::support::request(foxy.proxy, &origin.request("POST", "Content-Length: 0\r\n"));
        }
        foxy.signal("TERM");
        assert_eq!(foxy.wait().0.code(), Some(0));
    }
}

#[test]
fn what_was_invalidated_while_another_scheme_had_the_folder_does_not_come_back() {
    for other in ["buddy", "ufs"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (webcosm, other) = (["--scheme", "webcosm"], ["--scheme", other]);
        does_not_come_back(folder.path(), &[&webcosm, &other, &webcosm]);
    }
}

#[test]
fn what_was_invalidated_while_a_store_was_away_does_not_come_back() {
    // The test does not know which of the two stores gets the page, so it runs four times with new
    // stores.
    for _ in 0..4 {
        let (one, other) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let both = ["--store", other.path().to_str().expect("UTF-8")];
        does_not_come_back(one.path(), &[&both, &[], &both]);
        let turned = ["--store-selection", "round-robin", both[0], both[1]];
        does_not_come_back(one.path(), &[&both, &turned, &both]);
    }
}

#[test]
fn what_is_stored_by_schemes_that_share_their_files_comes_back() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Numbering::start());
    drop(with_a_stored_page(folder.path(), "ufs", &origin));
    let foxy = Foxy::start(folder.path(), &["--scheme", "aufs"]);
    assert!(get(&foxy, &origin).cache_status().contains("foxy; hit"));
}
