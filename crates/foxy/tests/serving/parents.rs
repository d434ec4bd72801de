//! Tests a foxy behind another foxy, which the environment or the settings name as parent proxy.

use crate::names::Named;
use crate::run::{Waiting, foxy_run};
use crate::support::commands::foxy;
use crate::support::{Foxy, command, request};

const SECRET: &str = "s3cret";

#[test]
fn foxy_reaches_origins_through_a_foxy_that_the_environment_names() {
    let mut named = Named::start(&[]);
    let (port, server) = named.places();
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let outer = Foxy::start(folders[0].path(), &["--name-server", &server]);
    let log = folders[1].path().join("access.log");
    let log_flag = log.to_str().expect("UTF-8");
    let mut inner = command(folders[1].path(), &["--size", "64M", "--access-log", log_flag]);
    inner.env("http_proxy", format!("http://user:{SECRET}@{}", outer.proxy));
    inner.env("no_proxy", "direct.test");
    let inner = Foxy::ready(inner);
    let line = format!("  parent      http://***@{} (http_proxy, for http only)\n", outer.proxy);
    assert!(inner.welcome.contains(&line), "{}", inner.welcome);
    for expected in ["fwd=uri-miss", "foxy; hit"] {
        let answer = inner.get(&format!("http://h7.origin.test:{port}/o/1/100/1"));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.cache_status().contains(expected), "{answer:?}");
    }
    assert_eq!(inner.get("http://direct.test/").status, 502, "foxy knows no such name");
    assert_eq!(outer.metric::<u64>("foxy_proxy_requests_total"), 1);
    assert_eq!(inner.metric::<u64>("foxy_proxy_parent_requests_total"), 1);
    inner.signal("TERM");
    let (_, said) = inner.wait();
    let logged = std::fs::read_to_string(log).expect("a log");
    let hierarchies: Vec<_> =
        logged.lines().filter_map(|line| line.split(' ').rev().nth(1)).collect();
    assert_eq!(hierarchies, ["FIRSTUP_PARENT/127.0.0.1", "HIER_NONE/-", "HIER_NONE/-"], "{logged}");
    assert!(!said.contains(SECRET) && !logged.contains(SECRET), "{said}{logged}");
}

#[test]
fn foxy_run_uses_the_proxy_of_the_environment_and_names_itself_to_the_command() {
    let mut named = Named::start(&[]);
    let (port, server) = named.places();
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let outer = Foxy::start(folders[0].path(), &["--name-server", &server]);
    let mut run = foxy_run(folders[1].path(), &[], "echo $http_proxy; read line; exit 0");
    run.env("http_proxy", format!("http://user:{SECRET}@{}", outer.proxy));
    let waiting = Waiting::start(run);
    assert_ne!(waiting.said, format!("http://{}", outer.proxy), "foxy's own proxy");
    let own = waiting.said.trim_start_matches("http://").parse().expect("an address");
    let url = format!("http://h7.origin.test:{port}/o/1/100/1");
    let text = format!("GET {url} HTTP/1.1\r\nHost: h7.origin.test\r\nConnection: close\r\n\r\n");
    assert_eq!(request(own, &text).status, 200);
    let (code, reports) = waiting.end();
    assert_eq!(code, Some(0), "{reports}");
    let expected = format!("foxy: uses the parent proxy http://***@{} (http_proxy", outer.proxy);
    assert!(reports.contains(&expected) && !reports.contains(SECRET), "{reports}");
    assert_eq!(outer.metric::<u64>("foxy_proxy_requests_total"), 1);
}

#[test]
fn foxy_check_never_shows_the_password_of_a_parent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("foxy.toml");
    let file = path.to_str().expect("UTF-8");
    for (line, code, expected) in [
        ("parent = \"http://user:s3cret@p.test:3128\"", 0, "parent = [\"http://***@p.test:3128\"]"),
        (
            "parent = \"ftp://user:s3cret@p.test:3128\"",
            2,
            "over http:// and https:// only; write a URL",
        ),
        ("parent = \"http://user:s3cret@p.test:3128", 2, "not valid TOML"),
        ("parent-credentials-file = \"/nonexistent\"", 2, "the file cannot be read"),
    ] {
        std::fs::write(&path, line).expect("written");
        let (ended, out, err) = foxy(&["check", file]);
        assert_eq!(ended, Some(code), "{out}{err}");
        assert!(out.contains(expected) || err.contains(expected), "{out}{err}");
        assert!(!out.contains(SECRET) && !err.contains(SECRET), "{out}{err}");
    }
}

#[test]
fn a_parent_that_accepts_no_connection_is_a_trouble() {
    let folder = tempfile::tempdir().expect("a folder");
    let dead = foxy_testkit::parent::dead_url();
    let mut foxy = Foxy::start(folder.path(), &["--parent", &dead]);
    assert_eq!(foxy.admin("/healthz").status, 200);
    assert!(foxy.get("http://a.test/").cache_status().contains("parent-unreachable"));
    let trouble = format!("parent proxy {dead}: it accepts no connection");
    let health = foxy.admin("/healthz");
    assert!(health.status == 503 && health.body.contains(&trouble), "{health:?}");
    foxy.report_containing(&trouble);
}
