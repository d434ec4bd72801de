//! Tests that foxy never shows the password of the engine, and that a file may contain it.

use crate::engine::{EngineKind, on_each_engine};
use crate::fleet::Fleet;
use crate::ground::Ground;
use crate::support::commands::foxy;
use crate::support::write_secret;
use std::sync::Arc;

const SECRET: &str = "s3cret";

on_each_engine!(
    a_running_node_never_shows_the_password_of_the_engine,
    the_password_of_the_engine_comes_from_a_file,
);

fn loopback() -> Arc<Ground> {
    Arc::new(Ground::loopback())
}

#[test]
fn foxy_check_never_shows_the_password_of_the_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, credentials) = (folder.path().join("foxy.toml"), folder.path().join("credentials"));
    write_secret(&credentials, "s3cret");
    let from_file = format!("engine-credentials-file = {:?}", credentials.display().to_string());
    for (engine, more, expected) in [
        ("redis://:s3cret@a.test", "", "engine = \"redis://***@a.test\""),
        ("rediss://u:s3cret@a.test:1/2", "", "engine = \"rediss://***@a.test:1/2\""),
        ("unix:///run/redis?pass=s3cret&db=1", "", "engine = \"unix:///run/redis?***\""),
        ("http://:s3cret@a.test", "", "write a URL such as redis://127.0.0.1:6379"),
        ("redis://:s3cret@a.test/x", "", "Invalid database number"),
        ("redis://a.test:s3cret", "", "write a URL such as redis://127.0.0.1:6379"),
        ("nats://u:s3cret@a.test/b", "", "engine = \"nats://***@a.test/b\""),
        ("tls://s3cret@a.test:1", "", "engine = \"tls://***@a.test:1\""),
        ("nats://a.test:s3cret", "", "the host or the port is unusable"),
        ("nats://s3cret@a.test/x.y", "", "the fleet's name is unusable"),
        ("redis://a.test", &from_file, "write one line with USER:PASSWORD or :PASSWORD"),
    ] {
        std::fs::write(&path, format!("[fleet]\nengine = \"{engine}\"\n{more}\n{REST}"))
            .expect("written");
        let file = path.to_str().expect("UTF-8");
        for arguments in [&["check", file][..], &["check", "--json", file]] {
            let (_, out, err) = foxy(arguments);
            let said = format!("{}{err}", out.replace("\\\"", "\""));
            let is_shown = said.contains(expected) || arguments.len() == 3;
            assert!(is_shown && !said.contains(SECRET), "{engine}: {said}");
        }
    }
}

/// The other settings of a fleet. The files do not exist, so `foxy check` reports them.
const REST: &str = r#"node = "a"
members = "a https://127.0.0.1:3130"
listen = "127.0.0.1:3130"
certificate = "/nonexistent"
key = "/nonexistent"
ca = "/nonexistent"
"#;

fn a_running_node_never_shows_the_password_of_the_engine(kind: EngineKind) {
    let Some(mut engine) = kind.start("the password of a fleet's engine") else { return };
    let login = engine.require_password(SECRET);
    let mut fleet = Fleet::start_with(loopback(), engine.url_with(&login), &[]);
    engine.kill();
    let node = fleet.nodes[0].as_mut().expect("a node");
    node.report_containing("the fleet's engine gives no usable answer");
    let admin = node.admin.to_string();
    let mut shown = node.welcome.clone();
    for path in ["/metrics", "/healthz", "/data/fleet", "/data/settings", "/data/live"] {
        shown += &node.admin(path).body;
    }
    for more in [&[][..], &["--json"]] {
        let (_, out, err) = foxy(&[&["fleet", "status", "--admin", &admin], more].concat());
        shown += &(out + &err);
    }
    assert!(shown.contains(&engine.url_with("***")), "{shown}");
    let answer = fleet.purge(0, "http://a.test/");
    shown += &format!("{answer:?}");
    let node = fleet.nodes[0].take().expect("a node");
    node.signal("TERM");
    shown += &node.wait().1;
    assert!(!shown.contains(SECRET), "{shown}");
}

fn the_password_of_the_engine_comes_from_a_file(kind: EngineKind) {
    let Some(mut engine) = kind.start("the password of a fleet's engine in a file") else { return };
    let login = engine.require_password(SECRET);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("credentials");
    let other = match kind {
        EngineKind::Nats => login.clone(),
        EngineKind::Redis => format!("default:{SECRET}"),
    };
    for text in [format!("{login}\n"), other] {
        write_secret(&path, &text);
        let file = path.to_str().expect("UTF-8");
        let fleet =
            Fleet::start_with(loopback(), engine.url(), &["--fleet-engine-credentials-file", file]);
        fleet.wait_for_leases();
    }
}
