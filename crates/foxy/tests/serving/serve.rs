//! Tests the program foxy: hits before and after a kill, logs, metrics, and a normal stop.

use crate::support::{Foxy, Origin, commands};
use foxy_testkit::wait::until;
use std::io::{Read, Write};
use std::path::Path;

/// Whether the store's file contains `text`. Text that was written to the file survives a kill of
/// foxy.
fn is_in_store(folder: &Path, text: &str) -> bool {
    let store = std::fs::read(folder.join("webcosm.foxy")).expect("the default store's file");
    memchr::memmem::find(&store, text.as_bytes()).is_some()
}

#[test]
fn a_page_is_stored_then_hit_and_survives_a_hard_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let foxy = Foxy::start(folder.path(), &[]);
    let first = foxy.get(&origin.url("page"));
    assert_eq!(first.status, 200);
    assert!(first.cache_status().contains("foxy; fwd=uri-miss"), "{first:?}");
    assert!(first.cache_status().contains("; stored"), "{first:?}");
    let second = foxy.get(&origin.url("page"));
    assert!(second.cache_status().contains("foxy; hit"), "{second:?}");
    assert_eq!(second.body, first.body);
    assert_eq!(origin.asked(), 1);
    until("writing", || is_in_store(folder.path(), &first.body).then_some(()));
    foxy.kill();
    let foxy = Foxy::start(folder.path(), &[]);
    let third = foxy.get(&origin.url("page"));
    assert!(third.cache_status().contains("foxy; hit"), "{third:?}");
    assert_eq!(third.body, first.body);
    assert_eq!(origin.asked(), 1);
}

#[test]
fn a_store_that_is_given_another_size_keeps_what_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    for (size, answer) in [("16M", "fwd=uri-miss"), ("48M", "foxy; hit"), ("32M", "foxy; hit")] {
        let foxy = Foxy::start_plain(folder.path(), &["--size", size]);
        let page = foxy.get(&origin.url("page"));
        assert!(page.cache_status().contains(answer), "{size}: {page:?}");
        foxy.signal("TERM");
        assert_eq!(foxy.wait().0.code(), Some(0));
    }
    assert_eq!(origin.asked(), 1);
}

#[test]
fn sigterm_ends_it_with_zero_and_what_was_stored_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let foxy = Foxy::start(folder.path(), &[]);
    let body = foxy.get(&origin.url("a")).body;
    foxy.signal("TERM");
    let (status, reports) = foxy.wait();
    assert_eq!(status.code(), Some(0), "{reports}");
    assert!(reports.contains("foxy: stopped\n"), "{reports}");
    let foxy = Foxy::start(folder.path(), &[]);
    let page = foxy.get(&origin.url("a"));
    assert!(page.cache_status().contains("foxy; hit"), "{page:?}");
    assert_eq!(page.body, body);
}

#[test]
fn a_store_behind_a_helper_process_outlasts_a_clean_stop_and_is_empty_after_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let flags = ["--scheme", "diskd", "--recovery", "clean-stop"];
    let foxy = Foxy::start(folder.path(), &flags);
    assert!(foxy.welcome.contains("diskd, helper"), "{}", foxy.welcome);
    let body = foxy.get(&origin.url("a")).body;
    foxy.signal("TERM");
    let (status, reports) = foxy.wait();
    assert_eq!(status.code(), Some(0), "{reports}");
    let foxy = Foxy::start(folder.path(), &flags);
    let page = foxy.get(&origin.url("a"));
    assert!(page.cache_status().contains("foxy; hit"), "{page:?}");
    assert_eq!(page.body, body);
    foxy.kill();
    let foxy = Foxy::start(folder.path(), &flags);
    let page = foxy.get(&origin.url("a"));
    assert!(page.cache_status().contains("fwd=uri-miss"), "{page:?}");
}

#[test]
fn idle_clients_do_not_delay_a_stop_and_a_second_signal_does_not_wait_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let foxy = Foxy::start(folder.path(), &["--stop-after", "1d"]);
    let mut idle = std::net::TcpStream::connect(foxy.proxy).expect("connected");
    let head = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", origin.url("a"), origin.address);
    idle.write_all(head.as_bytes()).expect("sent");
    let mut first = [0];
    idle.read_exact(&mut first).expect("an answer");
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
    let mut foxy = Foxy::start(folder.path(), &["--stop-after", "1d"]);
    let mut busy = std::net::TcpStream::connect(foxy.proxy).expect("connected");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = silent.local_addr().expect("bound");
    let head = format!("GET http://{address}/ HTTP/1.1\r\nHost: {address}\r\n\r\n");
    busy.write_all(head.as_bytes()).expect("sent");
    let _asked = silent.accept().expect("the request in progress");
    foxy.signal("TERM");
    foxy.report_containing("stopping after the requests in progress");
    foxy.signal("TERM");
    let (status, reports) = foxy.wait();
    assert_eq!(status.code(), Some(0));
    assert!(reports.contains("foxy: stopped at once"), "{reports}");
}

#[test]
fn the_mapping_of_ufs_decides_where_its_files_lie() {
    for (mapping, second) in [("consecutive", "00/00/00000001"), ("round-robin", "01/00/00000001")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let (origin, config) = (Origin::start(), folder.path().join("foxy.toml"));
        std::fs::write(&config, format!("[ufs]\nmapping = \"{mapping}\"\n")).expect("written");
        let config = config.to_str().expect("UTF-8");
        let foxy = Foxy::start(folder.path(), &["--scheme", "ufs", "--config", config]);
        foxy.get(&origin.url("a"));
        foxy.get(&origin.url("b"));
        until(mapping, || folder.path().join(second).exists().then_some(()));
    }
}

#[test]
fn a_default_size_is_kept_from_one_start_to_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let first = Foxy::start(folder.path(), &[]);
    first.get(&origin.url("a"));
    first.signal("INT");
    assert_eq!(first.wait().0.code(), Some(0));
    let config = folder.path().join("foxy.toml");
    std::fs::write(&config, "").expect("written");
    let second = Foxy::start_plain(folder.path(), &["--config", config.to_str().expect("UTF-8")]);
    assert!(second.welcome.contains("(64 MiB, webcosm"), "{}", second.welcome);
    assert!(second.get(&origin.url("a")).cache_status().contains("foxy; hit"));
}

#[test]
fn each_request_is_a_line_and_the_log_is_opened_anew_on_sighup() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let origin = Origin::start();
    let store = folder.path().join("store");
    let foxy = Foxy::start(&store, &["--access-log", log.to_str().expect("UTF-8")]);
    let lines = |path: &std::path::Path, count: usize| {
        until("logging", || {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            (text.lines().count() >= count).then_some(text)
        })
    };
    foxy.get(&origin.url("a"));
    foxy.get(&origin.url("a"));
    let text = lines(&log, 2);
    let fields: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    let url = origin.url("a");
    assert_eq!(fields[0][2..4], ["127.0.0.1", "TCP_MISS/200"], "{text}");
    assert_eq!(fields[0][5..], ["GET", &url, "-", "HIER_DIRECT/127.0.0.1", "text/plain"], "{text}");
    assert_eq!(fields[1][3], "TCP_MEM_HIT/200", "{text}");
    assert_eq!(fields[1][8..], ["HIER_NONE/-", "text/plain"], "{text}");
    std::fs::rename(&log, &old).expect("moved");
    foxy.signal("HUP");
    until("reopening", || log.exists().then_some(()));
    foxy.get(&origin.url("b"));
    assert!(lines(&log, 1).contains("/b "));
    assert_eq!(lines(&old, 2).lines().count(), 2);
}

#[test]
fn a_disk_that_fills_up_is_told_by_health_metrics_and_log_while_clients_are_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    // The file system has inodes for only two folders and three files, each of one page. Then it
    // counts as full.
    let flags = ["--scheme", "ufs", "--size", "32M"];
    let Some(mut foxy) = Foxy::start_on("size=40m,nr_inodes=8", folder.path(), &flags) else {
        return;
    };
    assert_eq!(foxy.admin("/healthz").status, 200);
    for page in 0..12 {
        assert_eq!(foxy.get(&origin.url(&format!("{page}"))).status, 200);
    }
    let health =
        until("trouble", || Some(foxy.admin("/healthz")).filter(|health| health.status == 503));
    assert!(
        health.body.contains("the disk is full, so new responses are not stored"),
        "{health:?}"
    );
    assert!(foxy.metric::<f64>("foxy_store_no_room_total") > 0.0);
    assert!(foxy.metric::<f64>("foxy_store_refused_no_space_total") > 0.0);
    foxy.report_containing("the disk is full, so new responses are not stored; free some space");
    assert!(foxy.get(&origin.url("0")).cache_status().contains("foxy; hit"));
}

#[test]
fn a_helper_that_is_killed_is_started_again_and_what_was_stored_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let foxy = Foxy::start(folder.path(), &["--scheme", "diskd", "--memory", "1M"]);
    let pages: Vec<_> = (0..40).map(|page| origin.url(&format!("{page}?bytes=50000"))).collect();
    pages.iter().for_each(|page| drop(foxy.get(page)));
    for round in 1..=2 {
        let [old] = foxy.children()[..] else { panic!("one helper") };
        commands::signal(old, "KILL");
        until("another helper", || {
            assert_eq!(foxy.get(&origin.url(&format!("new{round}"))).status, 200);
            (foxy.metric::<f64>("foxy_store_helper_restarts_total") >= f64::from(round))
                .then_some(())
        });
        assert!(foxy.children() != [old]);
        let hits = || {
            pages.iter().filter(|page| foxy.get(page).cache_status().contains("foxy; hit")).count()
        };
        until("hits", || (hits() >= 39).then_some(()));
    }
    let asked = origin.asked();
    let hits =
        pages.iter().filter(|page| foxy.get(page).cache_status().contains("foxy; hit")).count();
    assert_eq!(
        (hits, origin.asked()),
        (40, asked),
        "all of them, once what was lost is stored anew"
    );
}

#[test]
fn metrics_are_sound_and_grow() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let foxy = Foxy::start(folder.path(), &[]);
    let before = foxy.metric::<f64>("foxy_proxy_requests_total");
    foxy.get(&origin.url("a"));
    foxy.get(&origin.url("a"));
    assert_eq!(foxy.metric::<f64>("foxy_proxy_requests_total"), before + 2.0);
    assert_eq!(foxy.metric::<f64>("foxy_proxy_memory_hits_total"), 1.0);
    assert!(foxy.metric::<f64>("process_cpu_seconds_total") >= 0.0);
    let page = foxy.admin("/metrics");
    assert_eq!(page.fields["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    crate::support::exposition::check(&page.body);
    assert_eq!(foxy.admin("/healthz").body, "{\"ok\":true,\"troubles\":[]}\n");
}

#[test]
fn a_reverse_proxy_answers_for_its_origin() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let url = format!("http://{}", origin.address);
    let foxy = Foxy::start(folder.path(), &["--origin", &url]);
    let ask = || {
        crate::support::request(
            foxy.proxy,
            "GET /page HTTP/1.1\r\nHost: www.example\r\nConnection: close\r\n\r\n",
        )
    };
    assert!(ask().cache_status().contains("stored"));
    assert!(ask().cache_status().contains("foxy; hit"));
    assert_eq!(origin.asked(), 1);
}
