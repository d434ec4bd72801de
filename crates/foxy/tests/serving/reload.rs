//! Tests that a running foxy applies a changed configuration as a whole or not at all, and that no
//! request fails meanwhile.

use crate::support::commands::foxy as run;
use crate::support::{Foxy, Origin};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const DENY: &str = "[[rule]]\nname = \"closed\"\nwhen = { path = \"/closed*\" }\nthen = { access = \
                    \"deny\", message = \"closed today\" }\n";

/// A running foxy with a configuration file.
struct Scene {
    foxy: Foxy,
    origin: Origin,
    file: PathBuf,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("foxy.toml");
        std::fs::write(&file, "").expect("written");
        let log = folder.path().join("access.log");
        let path = |path: &PathBuf| path.to_str().expect("UTF-8").to_owned();
        let (config, access_log) = (path(&file), path(&log));
        let format = ["--access-log-format", "json"];
        let flags = [&["--config", &*config, "--access-log", &*access_log][..], &format].concat();
        let foxy = Foxy::start(&folder.path().join("store"), &flags);
        Self { foxy, origin: Origin::start(), file, log, _folder: folder }
    }

    fn write(&self, content: &str) {
        std::fs::write(&self.file, content).expect("written");
    }

    fn reload(&self) -> (Option<i32>, String, String) {
        run(&["reload", "--admin", &self.foxy.admin.to_string()])
    }

    fn status(&self, path: &str) -> u16 {
        self.foxy.get(&self.origin.url(path)).status
    }
}

#[test]
fn a_reload_says_that_its_file_does_not_exist() {
    let scene = Scene::start();
    std::fs::remove_file(&scene.file).expect("removed");
    let (code, _, err) = scene.reload();
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("foxy.toml") && err.contains("does not exist"), "{err}");
    assert!(!err.contains("regular"), "{err}");
}

#[test]
fn a_reload_prints_each_change_and_applies_it_at_once() {
    let scene = Scene::start();
    assert_eq!(scene.status("closed"), 200);
    let (code, printed, _) = scene.reload();
    assert_eq!((code, printed.trim_end()), (Some(0), "the configuration has not changed"));
    scene.write(DENY);
    let (code, printed, _) = scene.reload();
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.starts_with("applied 1 change; connections and stored responses stay\n"));
    assert!(printed.contains("  rule closed: none → when = { path = \"/closed*\" }"), "{printed}");
    let refused = scene.foxy.get(&scene.origin.url("closed"));
    assert_eq!(refused.status, 403);
    assert!(refused.body.starts_with("foxy: closed today (denied-by-rule)\n"), "{}", refused.body);
    let metrics = scene.foxy.admin("/metrics").body;
    assert!(metrics.contains("foxy_rule_requests_total{rule=\"closed\"} 1\n"), "{metrics}");
    foxy_testkit::wait::until("the log", || {
        let log = std::fs::read_to_string(&scene.log).unwrap_or_default();
        log.contains("\"rules\":\"closed\"").then_some(())
    });
    scene.write("");
    scene.foxy.signal("HUP");
    foxy_testkit::wait::until("the reload", || (scene.status("closed") == 200).then_some(()));
}

#[test]
fn a_watched_reload_is_taken_back_when_errors_jump() {
    let scene = Scene::start();
    scene.write(DENY);
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| {
            run(&["reload", "--watch", "--json", "--admin", &scene.foxy.admin.to_string()])
        });
        foxy_testkit::wait::until("the reload", || (scene.status("closed") == 403).then_some(()));
        foxy_testkit::wait::until("the old rules", || {
            (scene.status("closed") == 200).then_some(())
        });
        let (code, printed, _) = reload.join().expect("no panic");
        assert_eq!(code, Some(3), "the change is not in force");
        let said: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(said["watch"]["taken_back"], true, "{said}");
        let report = said["watch"]["report"].as_str().expect("text");
        assert!(report.starts_with("took the change back, because errors jumped: "), "{report}");
    });
}

#[test]
fn a_mistake_or_a_change_that_needs_a_restart_changes_nothing() {
    let scene = Scene::start();
    scene.write(&format!("{DENY}[[rule]]\nthen = {{ acess = \"deny\" }}\n"));
    let (code, printed, error) = scene.reload();
    assert_eq!((code, printed.as_str()), (Some(3), ""), "{error}");
    assert!(error.contains("foxy changed nothing"), "{error}");
    let (code, printed, _) = run(&["reload", "--json", "--admin", &scene.foxy.admin.to_string()]);
    let said: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let text = said["error"].as_str().expect("text");
    assert!(code == Some(3) && text.contains("foxy.toml:"), "{code:?}: {said}");
    assert!(error.contains("foxy.toml:6:10: rule 2: there is no key `acess`"), "{error}");
    scene.write(&format!("connect-ports = [443, 8443]\n{DENY}"));
    let (code, _, error) = scene.reload();
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("connect-ports: [443] → [443, 8443]"), "{error}");
    assert!(!error.contains("rule closed"), "only changes that need a restart: {error}");
    assert_eq!(scene.status("closed"), 200, "the new rule is not in force");
}

#[test]
fn a_new_ceiling_makes_stored_responses_stale_and_its_end_makes_them_fresh() {
    let scene = Scene::start();
    let ceiling = "[[rule]]\nwhen = { path = \"/x*\" }\nthen = { fresh-at-most = \"0s\" }\n";
    let cached =
        |path: &str| scene.foxy.get(&scene.origin.url(path)).cache_status().contains("hit");
    assert!(!cached("x") && !cached("xx"));
    assert!(cached("x") && cached("xx"));
    scene.write(ceiling);
    assert_eq!(scene.reload().0, Some(0));
    assert!(!cached("x"), "the response in memory has the new lifetime");
    scene.write("");
    assert_eq!(scene.reload().0, Some(0));
    assert!(cached("xx"), "the response stayed in memory");
}

#[test]
fn reloads_under_load_fail_no_request() {
    let scene = Scene::start();
    let (ends, files) = (AtomicBool::new(false), ["", DENY]);
    let requests = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let (scene, ends) = (&scene, &ends);
                scope.spawn(move || {
                    let mut count = 0;
                    while !ends.load(Ordering::Relaxed) {
                        assert_eq!(scene.status(&format!("open{client}")), 200);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for round in 0..40 {
            scene.write(files[round % 2]);
            reload_over_http(&scene.foxy, &scene.file);
        }
        ends.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("no request failed")).sum::<usize>()
    });
    assert!(requests >= 40, "{requests} requests during the reloads");
}

fn reload_over_http(foxy: &Foxy, file: &Path) {
    let request =
        format!("POST /reload HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", foxy.admin);
    let stream = std::net::TcpStream::connect(foxy.admin).expect("the admin server listens");
    let answer = foxy_testkit::client::exchange(stream, &request);
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}: {answer:?}", file.display());
}
