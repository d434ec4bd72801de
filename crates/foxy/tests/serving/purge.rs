//! Tests purges of a running foxy. Purged responses must not be served again, even after a kill
//! right after the purge.

use crate::support::{Foxy, Origin, refused, request};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn purge(foxy: &Foxy, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.env_clear().stdin(Stdio::null()).arg("purge").args(arguments);
    command.args(["--admin", &foxy.admin.to_string()]).output().expect("the binary runs")
}

fn purged(foxy: &Foxy, arguments: &[&str]) -> String {
    let output = purge(foxy, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Whether foxy answers a request for a page from its cache.
fn hit(foxy: &Foxy, url: &str) -> bool {
    let page = foxy.get(url);
    assert_eq!(page.status, 200, "{page:?}");
    page.cache_status().contains("foxy; hit")
}

/// Stores pages. Then restarts foxy normally, and checks that all pages are hits. So they are on
/// disk.
fn stored(folder: &Path, flags: &[&str], urls: &[String]) -> Foxy {
    let foxy = Foxy::start(folder, flags);
    for url in urls {
        foxy.get(url);
    }
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    let foxy = Foxy::start(folder, flags);
    for url in urls {
        assert!(hit(&foxy, url), "{url} was not stored");
    }
    foxy
}

#[test]
fn what_was_purged_stays_purged_after_a_kill_at_once_in_every_kind_of_store() {
    // Some schemes move a record when it is read. A kill may lose a record that is being moved, so
    // not every page must survive.
    for (scheme, keeps) in [
        ("webcosm", true),
        ("stream-packetizer", true),
        ("aufs", true),
        ("coss", false),
        ("buddy", false),
        ("lazy-reads-loc", false),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let origin = Origin::start();
        let flags = ["--scheme", scheme];
        let urls = ["soft", "hard", "p/1", "kept"].map(|page| origin.url(page));
        let foxy = stored(folder.path(), &flags, &urls);
        purged(&foxy, &[&urls[0]]);
        purged(&foxy, &[&urls[1], "--hard"]);
        purged(&foxy, &["--prefix", &origin.url("p/"), "--hard"]);
        foxy.kill();
        let foxy = Foxy::start(folder.path(), &flags);
        let soft = foxy.get(&urls[0]);
        let expected = if keeps { "fwd=stale" } else { "fwd=" };
        assert!(soft.cache_status().contains(expected), "{scheme}: {soft:?}");
        assert!(!hit(&foxy, &urls[1]), "{scheme}: a hard purge was undone");
        assert!(!hit(&foxy, &urls[2]), "{scheme}: a purge by prefix was undone");
        assert!(hit(&foxy, &urls[3]) || !keeps, "{scheme}: what was not purged is gone");
        foxy.kill();
    }
}

#[test]
fn a_dry_run_counts_responses_and_names_what_means_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let urls = ["p/1", "p/2", "q"].map(|page| origin.url(page));
    let foxy = stored(folder.path(), &[], &urls);
    let prefix = origin.url("p/");
    let said = purged(&foxy, &["--prefix", &prefix, "--dry-run"]);
    let expected = "at least 2, in memory; foxy cannot count further ones on disk\n";
    assert_eq!(said, format!("responses to purge: {expected}"));
    for site in ["127.0.0.1", "http://127.0.0.1", &origin.url("")] {
        let said = purged(&foxy, &["--site", site.trim_end_matches('/'), "--dry-run"]);
        assert!(said.starts_with("responses to purge: at least 3, in memory"), "{site}: {said}");
    }
    let names = [&urls[2], &urls[2], &origin.url("typo"), "--json"];
    let said = purged(&foxy, &[&names[..], &["--dry-run"]].concat());
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let once = serde_json::json!({ "memory": 1, "disk": 0, "at_least": 1 });
    assert_eq!(said["objects"], once);
    assert_eq!(said["unmatched"][0]["name"], format!("url {}", origin.url("typo")));
    assert_eq!(
        (&said["number"], said["unmatched"][0]["disk_searched"].as_bool()),
        (&serde_json::Value::Null, Some(true))
    );
    let said = purged(&foxy, &["--site", "exmaple.test", "--dry-run"]);
    assert!(said.contains("\nmemory has nothing for site exmaple.test; "), "{said}");
    assert!(urls.iter().all(|url| hit(&foxy, url)), "a dry run purges nothing");
    let said: serde_json::Value = serde_json::from_str(&purged(&foxy, &names)).expect("JSON");
    assert_eq!(said["objects"], once, "the purge counts like its dry run");
    foxy.signal("TERM");
    foxy.wait();
    let foxy = Foxy::start(folder.path(), &[]);
    for more in [&["--dry-run"][..], &[]] {
        let said = purged(&foxy, &[&[urls[0].as_str(), "--json"], more].concat());
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        let on_disk = serde_json::json!({ "memory": 0, "disk": 1, "at_least": 1 });
        assert_eq!(said["objects"], on_disk, "{more:?}");
    }
}

#[test]
fn a_purge_of_everything_holds_for_every_store_and_a_lost_list_forgets_everything() {
    let (one, other) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let origin = Origin::start();
    let flags = ["--store", other.path().to_str().expect("UTF-8")];
    let urls = ["a", "b", "c", "d"].map(|page| origin.url(page));
    let foxy = stored(one.path(), &flags, &urls);
    let said = purged(&foxy, &["--all", "--hard"]);
    let expected =
        "at least 4, in memory; foxy cannot count further ones on disk; purge number 1\n";
    assert_eq!(said, format!("responses purged (gone): {expected}"));
    foxy.kill();
    let foxy = stored(one.path(), &flags, &urls);
    foxy.signal("TERM");
    foxy.wait();
    for folder in [&one, &other] {
        std::fs::remove_file(folder.path().join("foxy.purges")).expect("a list in each folder");
    }
    let foxy = Foxy::start(one.path(), &flags);
    assert!(
        urls.iter().all(|url| !hit(&foxy, url)),
        "purges may be missing, so nothing is believed"
    );
}

#[test]
fn a_purge_says_what_is_wrong_with_it_and_who_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    crate::support::write_secret(&token, "0123456789abcdef\n");
    let token = token.to_str().expect("UTF-8");
    let foxy = Foxy::start(&folder.path().join("store"), &["--admin-token-file", token]);
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let output = purge(&foxy, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    };
    refused(&["--all"], 3, "admin-token-file (admin-token) (401)");
    refused(&["--admin-token-file", token, "/x"], 3, "must begin with http://HOST");
    refused(&[], 2, "required");
    purged(&foxy, &["--admin-token-file", token, "--site", "example.com", "--tag", "news"]);
    let head = "PURGE http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n";
    assert_eq!(request(foxy.proxy, &format!("{head}\r\n")).status, 403);
    let borne = "Proxy-Authorization: Bearer 0123456789abcdef\r\n";
    assert_eq!(request(foxy.proxy, &format!("{head}{borne}\r\n")).status, 200);
    assert!(
        foxy.admin("/metrics").body.contains("foxy_proxy_purges_total 4\n"),
        "two sites, a tag and a URL"
    );
}

/// Sends `/explain` to the admin server with the `Host` field `name`. Returns the status.
fn asked(foxy: &Foxy, name: &str) -> u16 {
    let host = format!("{name}:{}", foxy.admin.port());
    request(
        foxy.admin,
        &format!("GET /explain?url=http://a.test/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    )
    .status
}

#[test]
fn no_page_reads_the_admin_server_under_a_name_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = Foxy::start(folder.path(), &[]);
    assert_eq!(["evil.test", "127.0.0.1.evil.test"].map(|name| asked(&foxy, name)), [421, 421]);
    assert_eq!(["127.0.0.1", "localhost"].map(|name| asked(&foxy, name)), [200, 200]);
    assert_eq!(request(foxy.admin, "GET /healthz HTTP/1.0\r\n\r\n").status, 200);
}

#[test]
fn a_listed_name_reaches_the_admin_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = Foxy::start(folder.path(), &["--admin-host", "foxy.test"]);
    assert_eq!(["foxy.test", "evil.test"].map(|name| asked(&foxy, name)), [200, 421]);
}

#[test]
fn a_token_that_every_user_may_read_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "0123456789abcdef\n").expect("written");
    set_permissions(&token, Permissions::from_mode(0o644)).expect("changed");
    let flags = ["--admin-token-file", token.to_str().expect("UTF-8")];
    let (code, said) = refused(&folder.path().join("store"), &flags);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("(mode 644); run `chmod 600 "), "{said}");
}

#[test]
fn explain_says_what_is_stored_and_what_follows() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let foxy = Foxy::start(folder.path(), &[]);
    let explained = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
        command.env_clear().stdin(Stdio::null()).arg("explain").args(arguments);
        let output =
            command.args(["--admin", &foxy.admin.to_string()]).output().expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let url = origin.url("page?a=1&b=%20");
    assert!(
        explained(&[&url]).ends_with("foxy fetches the response from the origin (fwd=uri-miss)\n")
    );
    foxy.get(&url);
    let text = explained(&[&url]);
    assert!(text.contains("stored (memory): "), "{text}");
    assert!(text.contains("Content-Type: text/plain\n"), "{text}");
    assert!(text.contains("the freshness lifetime is 3600 s, from max-age\n"), "{text}");
    let json = explained(&[&url, "--json", "--field", "Cache-Control: no-cache"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let last = json["steps"].as_array().and_then(|steps| steps.last()).expect("steps");
    assert_eq!(
        (last["rule"].as_str(), json["stored"]["where"].as_str()),
        (Some("fetch"), Some("memory"))
    );
    assert_eq!(origin.asked(), 1);
}
