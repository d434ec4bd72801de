//! Tests the metrics of a running foxy, and the files of `packaging/monitoring` that use them.

use crate::support::commands::foxy as run;
use crate::support::{Foxy, exposition, not_run, request};
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

const DENY: &str = "[[rule]]\nname = \"closed\"\nwhen = { path = \"/closed*\" }\nthen = { access = \
                    \"deny\" }\n";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const OPENMETRICS: &str = "Accept: application/openmetrics-text; version=1.0.0\r\n";

/// A reverse proxy that has answered requests of several outcomes.
struct Scene {
    foxy: Foxy,
    folder: tempfile::TempDir,
}

impl Scene {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, log) = (folder.path().join("foxy.toml"), folder.path().join("access.log"));
        let origin = TestOrigin::start(|head, _| match head.split(' ').nth(1) {
            Some("/secret") => ok("Cache-Control: no-store\r\n", b"body"),
            _ => ok("Cache-Control: max-age=60\r\n", b"body"),
        });
        let origin = format!(
            "[[origin]]\nname = \"app\"\nservers = [\"http://{}\"]\n{DENY}",
            origin.address
        );
        std::fs::write(&file, origin).expect("written");
        let ring = folder.path().join("transactions");
        let [file, log, ring] = [&file, &log, &ring].map(|path| path.to_str().expect("UTF-8"));
        let flags = ["--config", file, "--access-log", log, "--transaction-log", ring];
        let foxy = Foxy::start(&folder.path().join("store"), &flags);
        let scene = Self { foxy, folder };
        scene.get("/page", "");
        scene.get("/page", &format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n"));
        ["/page", "/secret", "/closed"].iter().for_each(|path| scene.get(path, ""));
        let count = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
        until("all requests counted", || {
            let page = scene.metrics("").1;
            let cells = page.lines().filter(|line| line.starts_with("foxy_proxy_responses_total"));
            (cells.filter_map(count).sum::<u64>() == 5).then_some(())
        });
        scene
    }

    fn get(&self, path: &str, fields: &str) {
        let text =
            format!("GET {path} HTTP/1.1\r\nHost: app.test\r\n{fields}Connection: close\r\n\r\n");
        request(self.foxy.proxy, &text);
    }

    /// Returns media type and text of the page `/metrics`.
    fn metrics(&self, fields: &str) -> (String, String) {
        let text = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.foxy.admin);
        let mut page = request(self.foxy.admin, &text);
        (page.fields.remove("content-type").unwrap_or_default(), page.body)
    }
}

/// Returns the words that look like names of metrics.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let words = words.filter(|word| word.starts_with("foxy_") || word.starts_with("process_"));
    words.map(ToOwned::to_owned).collect()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/monitoring").join(name)
}

fn file(name: &str) -> String {
    std::fs::read_to_string(path(name)).expect("a file")
}

#[test]
fn each_metric_that_a_file_for_monitoring_names_exists() {
    let scene = Scene::start();
    let page = scene.metrics("").1;
    let samples: BTreeSet<_> =
        page.lines().filter_map(|line| line.split([' ', '{']).next()).collect();
    let dashboard = file("grafana-dashboard.json");
    serde_json::from_str::<Value>(&dashboard).expect("JSON");
    for text in [dashboard, file("foxy.rules.yml")] {
        // The tests of fleets read these metrics.
        let named: BTreeSet<_> =
            names(&text).into_iter().filter(|name| !name.starts_with("foxy_fleet_")).collect();
        assert!(named.len() > 10, "{named:?}");
        let missing: Vec<_> =
            named.iter().filter(|name| !samples.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?} are not in {page}");
    }
}

#[test]
fn requests_count_by_outcome_class_and_reason() {
    let scene = Scene::start();
    let page = scene.metrics("").1;
    exposition::check(&page);
    for line in [
        "foxy_proxy_responses_total{outcome=\"memory-hit\",class=\"2xx\"} 2",
        "foxy_proxy_responses_total{outcome=\"miss\",class=\"2xx\"} 2",
        "foxy_proxy_responses_total{outcome=\"refused\",class=\"4xx\"} 1",
        "foxy_proxy_request_duration_seconds_count{outcome=\"memory-hit\"} 2",
        "foxy_origin_first_byte_seconds_count 2",
        "foxy_proxy_errors_total{reason=\"denied-by-rule\"} 1",
        "foxy_proxy_not_stored_total{reason=\"response-no-store\"} 1",
    ] {
        assert!(page.lines().any(|found| found == line), "no {line} in {page}");
    }
}

#[test]
fn status_shows_the_requests_of_a_running_foxy() {
    let scene = Scene::start();
    let admin = scene.foxy.admin.to_string();
    let status = ["status", "--admin", &admin, "--interval", "10ms"];
    let (code, said, _) = run(&[&status[..], &["--json"]].concat());
    let found: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((code, &found["requests"]["total"]), (Some(0), &5.0.into()));
    assert_eq!(found["hit_ratio"]["total"], 0.5);
    let (_, said, _) = run(&status);
    assert!(said.contains(": healthy\n") && said.contains("denied-by-rule"), "{said}");
}

#[test]
fn doctor_names_an_unusable_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("foxy.toml");
    std::fs::write(&file, "memory = \"much\"\n").expect("written");
    let file = file.to_str().expect("UTF-8");
    let (code, said, _) = run(&["doctor", "--config", file, "--json"]);
    let found: Value = serde_json::from_str(&said).expect("JSON");
    let finding = &found["findings"][0];
    assert_eq!((code, &found["ok"]), (Some(1), &false.into()));
    assert_eq!(
        (&finding["subject"], &finding["grade"]),
        (&"configuration".into(), &"fault".into())
    );
    assert_eq!(finding["command"], format!("foxy check {file}"));
}

#[test]
fn commands_print_json() {
    let scene = Scene::start();
    let path = |name: &str| scene.folder.path().join(name).display().to_string();
    let admin = scene.foxy.admin.to_string();
    let (users, authority, log) = (path("users"), path("ca"), path("access.log"));
    assert_eq!(run(&["user", "token", &users, "ann"]).0, Some(0));
    assert_eq!(run(&["ca", "init", "--allow", "a.test", "--dir", &authority]).0, Some(0));
    let json = |words: &[&str]| -> Value {
        let (code, out, err) = run(words);
        assert_eq!(code, Some(0), "{out}{err}");
        serde_json::from_str(&out).expect("JSON")
    };
    assert_eq!(json(&["health", "--json", "--admin", &admin])["ok"], true);
    let users = json(&["user", "list", &users, "--json"]);
    assert_eq!(users["users"], serde_json::json!([{ "name": "ann", "proof": "token" }]));
    assert_eq!(json(&["ca", "show", "--dir", &authority, "--json"])["hosts"][0], "a.test");
    let log = json(&["log", "stats", &log, "--json"]);
    assert!(log["all"]["requests"].is_u64() && log["is_estimate"] == false, "{log}");
}

#[test]
fn doctor_knows_the_running_foxy() {
    let scene = Scene::start();
    let (file, store) = (scene.folder.path().join("running.toml"), scene.folder.path());
    let Foxy { proxy, admin, .. } = &scene.foxy;
    let text = format!(
        "listen = \"{proxy}\"\nadmin = \"{admin}\"\nstore = \"{}\"\nsize = \"64M\"\n",
        store.join("store").display()
    );
    std::fs::write(&file, text).expect("written");
    let file = file.to_str().expect("UTF-8");
    let (_, said, err) = run(&["doctor", "--config", file, "--name", "localhost", "--json"]);
    let found: Value = serde_json::from_str(&said).expect("JSON");
    let found = found["findings"].as_array().expect("findings");
    let has = |subject: &str| found.iter().any(|finding| finding["subject"] == subject);
    assert!(has("foxy") && !has("ports") && !has("stores"), "{said}{err}");
}

#[cfg(feature = "top")]
#[test]
fn top_prints_a_frame_of_a_running_foxy() {
    let scene = Scene::start();
    let admin = scene.foxy.admin.to_string();
    let (code, said, err) = run(&["top", "--once", "--admin", &admin, "--interval", "100ms"]);
    assert_eq!(code, Some(0), "{err}");
    for part in [&format!("at {admin}, "), "memory-hit", "miss", "store", "serving"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let (_, said, _) = run(&["top", "--once", "--json", "--admin", &admin]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert!(said["now_ms"].is_u64(), "{said}");
    let (code, _, err) = run(&["top", "--admin", &admin]);
    assert!(code == Some(2) && err.contains("--once prints one frame"), "{err}");
}

#[test]
fn openmetrics_names_the_trace_of_a_request() {
    let scene = Scene::start();
    let (media_type, page) = scene.metrics(OPENMETRICS);
    assert_eq!(media_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(page.ends_with("\n# EOF\n"), "{page}");
    let exemplar = format!(" # {{trace_id=\"{TRACE}\"}} ");
    let found = page.lines().filter(|line| line.contains(&exemplar));
    let found: Vec<_> = found.collect();
    let is_bucket = |line: &&str| {
        line.starts_with("foxy_proxy_request_duration_seconds_bucket{outcome=\"memory-hit\"")
    };
    assert_eq!(found.iter().filter(|line| is_bucket(line)).count(), found.len());
    assert_eq!(found.len(), 1, "{page}");
    assert!(!scene.metrics("").1.contains("trace_id"));
}

/// Runs a check of promtool, which must find no fault.
fn promtool(arguments: &[&str], input: &Path) {
    let input = File::open(input).expect("a file");
    let output = Command::new("promtool").args(["check"]).args(arguments).stdin(input).output();
    let output = output.expect("promtool starts");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
}

#[test]
fn promtool_accepts_the_metrics_and_the_alerts() {
    if Command::new("promtool").arg("--version").output().is_err() {
        return not_run("promtool", "it is not installed");
    }
    let scene = Scene::start();
    let page = scene.folder.path().join("metrics");
    std::fs::write(&page, scene.metrics("").1).expect("written");
    promtool(&["metrics"], &page);
    let rules = path("foxy.rules.yml");
    promtool(&["rules", &rules.to_string_lossy()], &rules);
}
