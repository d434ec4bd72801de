//! An origin with pages that change, a store that speaks S3, and foxies that use both.

use crate::s3::S3;
use crate::support::{Foxy, Response, not_run, request, write_secret};
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

pub const PAGE_BYTES: u64 = 300_000;

/// The version of each page that has changed. Other pages have version 0.
type Versions = Arc<Mutex<BTreeMap<String, u32>>>;

pub struct Scene {
    pub s3: S3,
    origin: TestOrigin,
    versions: Versions,
    secrets: TempDir,
}

impl Scene {
    /// Returns `None` if the machine has no store that speaks S3.
    pub fn start(check: &str) -> Option<Self> {
        let Some(s3) = S3::start() else {
            not_run(check, "the machine has no moto_server");
            return None;
        };
        let secrets = tempfile::tempdir().expect("a folder");
        write_secret(&secrets.path().join("s3"), "name:secret\n");
        let versions = Versions::default();
        let known = Arc::clone(&versions);
        let origin = TestOrigin::start(move |request, _| page(&known, request));
        Some(Self { s3, origin, versions, secrets })
    }

    pub fn foxy(&self, folder: &Path, timeout: &str) -> Foxy {
        self.foxy_with(folder, timeout, &["--memory", "64M"])
    }

    pub fn foxy_with(&self, folder: &Path, timeout: &str, more: &[&str]) -> Foxy {
        let credentials = self.secrets.path().join("s3").display().to_string();
        let own = self.s3.flags("foxy", &credentials);
        let mut flags: Vec<&str> = own.iter().map(String::as_str).collect();
        flags.extend(["--cold-timeout", timeout, "--purge-from", "127.0.0.1"]);
        flags.extend(more);
        Foxy::start(folder, &flags)
    }

    /// Starts a foxy with a new disk. Returns it when it has found `records` in the cold tier.
    pub fn wiped(&self, timeout: &str, records: u64) -> (Foxy, TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let foxy = self.foxy(folder.path(), timeout);
        finds(&foxy, records);
        (foxy, folder)
    }

    /// Returns the URL of a page of 300,000 bytes.
    pub fn page(&self, number: u64) -> String {
        self.origin.url(&format!("/{number}/bytes={PAGE_BYTES}"))
    }

    /// Returns the URL of a page that varies by `Accept-Language`.
    pub fn varied_page(&self, number: u64) -> String {
        self.origin.url(&format!("/vary/{number}/bytes={PAGE_BYTES}"))
    }

    /// Gives a page a new content.
    pub fn change(&self, url: &str) {
        let mut versions = self.versions.lock().expect("sound");
        *versions.entry(path_of(url).to_owned()).or_default() += 1;
    }

    /// Returns the content that a page has now.
    pub fn content(&self, url: &str) -> String {
        body(path_of(url), version(&self.versions, path_of(url)))
    }

    /// Returns the number of requests that the origin has received.
    pub fn asked(&self) -> usize {
        self.origin.requests()
    }

    /// Puts pages into the cold tier, and stops foxy.
    pub fn fill(&self, folder: &Path, urls: &[String]) {
        let foxy = self.foxy(folder, "10s");
        until("the store's first answer", || up(&foxy));
        urls.iter().for_each(|url| offer(&foxy, url));
        stop(foxy);
    }
}

fn path_of(url: &str) -> &str {
    let rest = url.trim_start_matches("http://");
    rest.find('/').map_or("/", |at| &rest[at..])
}

fn version(versions: &Versions, path: &str) -> u32 {
    versions.lock().expect("sound").get(path).copied().unwrap_or(0)
}

fn body(path: &str, version: u32) -> String {
    let line = format!("{path} has version {version}\n");
    let bytes = path.rsplit_once("bytes=").and_then(|(_, bytes)| bytes.parse().ok());
    let bytes = bytes.unwrap_or(line.len());
    let mut body = line.repeat(bytes / line.len() + 1);
    body.truncate(bytes);
    body
}

fn page(versions: &Versions, request: &str) -> Vec<u8> {
    let path = request.split(' ').nth(1).unwrap_or("/");
    let version = version(versions, path);
    let vary = if path.starts_with("/vary/") { "Vary: Accept-Language\r\n" } else { "" };
    let fields = format!("Cache-Control: max-age=3600\r\nETag: \"{version}\"\r\n{vary}");
    if header(request, "if-none-match") == Some(&*format!("\"{version}\"")) {
        return format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").into_bytes();
    }
    ok(&fields, body(path, version).as_bytes())
}

/// Waits until foxy knows this number of records in the cold tier. A node looks for records of
/// others once a minute.
pub fn finds(foxy: &Foxy, records: u64) {
    let count = || sum(foxy, "foxy_cold_records{state=\"stored\"}");
    for _ in 0..180 {
        if count() == records as f64 {
            return;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    panic!("foxy knows {} records, not {records}", count());
}

pub fn stop(foxy: Foxy) {
    foxy.signal("TERM");
    let (status, said) = foxy.wait();
    assert_eq!(status.code(), Some(0), "{said}");
}

/// Returns the sum of the samples that begin with this text.
pub fn sum(foxy: &Foxy, begin: &str) -> f64 {
    let text = foxy.admin("/metrics").body;
    let lines = text.lines().filter(|line| line.starts_with(begin));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

pub fn up(foxy: &Foxy) -> Option<()> {
    (sum(foxy, "foxy_cold_up ") == 1.0).then_some(())
}

/// Gets a page until foxy has offered it to the cold tier. On a busy machine, the cold tier may
/// refuse the first offer. A reload then gives the page a new chance.
pub fn offer(foxy: &Foxy, url: &str) {
    let records = || sum(foxy, "foxy_cold_records{");
    let before = records();
    assert_eq!(foxy.get(url).status, 200);
    until("a new record of the cold tier", || {
        assert_eq!(foxy.get(url).status, 200);
        let is_offered = records() > before;
        if !is_offered {
            reload(foxy, url);
        }
        is_offered.then_some(())
    });
}

/// Waits until foxy has sent a segment to the store.
pub fn sent_a_segment(foxy: &Foxy) {
    until("a full segment", || {
        let put = "foxy_cold_requests_total{kind=\"put-segment\",result=\"ok\"}";
        (sum(foxy, put) >= 1.0).then_some(())
    });
}

/// Whether the response came from the cold tier without a question to the origin.
pub fn is_cold_hit(page: &Response) -> bool {
    page.cache_status().starts_with("foxy; hit") && page.cache_status().ends_with("detail=cold")
}

/// Whether the response came from the cold tier, and the origin confirmed it.
pub fn is_confirmed(page: &Response) -> bool {
    page.cache_status().contains("fwd-status=304")
        && page.cache_status().ends_with("detail=cold-unconfirmed")
}

fn send(foxy: &Foxy, method: &str, url: &str, fields: &str) -> Response {
    let host = url.trim_start_matches("http://").split('/').next().expect("a host");
    let text =
        format!("{method} {url} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\n\r\n");
    request(foxy.proxy, &text)
}

/// Removes a URL. A soft purge would only let the origin validate the response.
pub fn purge(foxy: &Foxy, url: &str) -> Response {
    send(foxy, "PURGE", url, "Foxy-Purge: hard\r\n")
}

/// Purges a URL again and again, until foxy has acknowledged the purge.
pub fn purge_surely(foxy: &Foxy, url: &str) {
    until("the acknowledgement of a purge", || (purge(foxy, url).status == 200).then_some(()));
}

pub fn post(foxy: &Foxy, url: &str) {
    assert_eq!(send(foxy, "POST", url, "Content-Length: 0\r\n").status, 200);
}

/// Gets a page anew from the origin.
pub fn reload(foxy: &Foxy, url: &str) -> Response {
    send(foxy, "GET", url, "Cache-Control: no-cache\r\n")
}

pub fn get_in(foxy: &Foxy, url: &str, language: &str) -> Response {
    send(foxy, "GET", url, &format!("Accept-Language: {language}\r\n"))
}
