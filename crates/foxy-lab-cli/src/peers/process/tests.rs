//! Tests that stopping a proxy ends all its processes. Shell scripts take the place of proxies.

use super::*;
use crate::peers::Holding;
use crate::peers::helper::Helper;
use foxy_authority::MadeCertificate;
use foxy_base::ByteSize;

fn described(folder: &Path) -> Description {
    Description {
        folder: folder.join("proxy"),
        listen: "127.0.0.1:1".parse().expect("an address"),
        origin: "127.0.0.1:2".parse().expect("an address"),
        papers: None,
        disk: ByteSize(1 << 20),
        memory: ByteSize(1 << 20),
        holding: Holding::Disk,
        store: None,
        beside: Vec::new(),
        cores: 1,
    }
}

fn shell(script: &str, folder: &Path) -> Result<Running, String> {
    let plan = Plan { serve: vec!["-c".into(), script.into()], ..Plan::default() };
    let peer = Peer::find("nginx").expect("known");
    Running::start(&peer, Path::new("/bin/sh"), &described(folder), &plan, None)
}

/// Starts a script that starts another process. Returns both processes.
fn with_child(folder: &Path) -> (Running, Process) {
    std::fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("readable");
    let running = shell("sleep 600 & echo $! >child; wait", folder).expect("started");
    let file = folder.join("proxy/child");
    let child = loop {
        match std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<u32>().ok()) {
            Some(child) => break child,
            None => std::thread::sleep(TICK),
        }
    };
    (running, Process::find(child).expect("it runs"))
}

fn check_that_it_ends(child: &Process) {
    let mut looks = 0;
    while child.still_runs() && looks < 500 {
        std::thread::sleep(TICK);
        looks += 1;
    }
    assert!(!child.still_runs(), "{child:?} still runs");
}

#[test]
fn what_a_proxy_started_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut running, child) = with_child(folder.path());
    assert!(running.usage().is_some_and(|usage| usage.resident > 0));
    running.stop();
    assert!(running.ended().is_some());
    check_that_it_ends(&child);
}

#[test]
fn what_runs_beside_a_proxy_counts_with_it_and_ends_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("readable");
    let described = described(folder.path());
    let number = described.folder.join("number");
    let script = format!("setsid sleep 600 & echo $! >{}", number.display());
    let arguments = vec!["-c".into(), script];
    let helper = Some(Helper { program: "sh", package: "dash", arguments, number: number.clone() });
    let plan =
        Plan { serve: vec!["-c".into(), "sleep 600; true".into()], helper, ..Plan::default() };
    let peer = Peer::find("apache2").expect("known");
    let mut running =
        Running::start(&peer, Path::new("/bin/sh"), &described, &plan, None).expect("started");
    let number =
        std::fs::read_to_string(number).expect("written").trim().parse().expect("a number");
    let beside = Process::find(number).expect("it runs");
    assert!(running.processes().contains(&number));
    running.stop();
    check_that_it_ends(&beside);

    let arguments = vec!["-c".into(), "exit 3".into()];
    let number = described.folder.join("never");
    let helper = Some(Helper { program: "sh", package: "dash", arguments, number });
    let refused =
        Running::start(&peer, Path::new("/bin/sh"), &described, &Plan { helper, ..plan }, None);
    let why = refused.err().expect("it did not start");
    assert_eq!(why, "apache2: sh did not start (exit status: 3)");
}

#[test]
fn what_a_proxy_leaves_behind_that_was_killed_ends_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut running, child) = with_child(folder.path());
    running.child.kill().and_then(|()| running.child.wait()).expect("killed");
    assert!(child.still_runs());
    running.stop();
    check_that_it_ends(&child);
}

/// The first script ends only after the lab has asked the second script to end. If the lab first
/// waited for the first script, the wait would time out and the lab would kill this script.
#[test]
fn proxies_that_are_asked_to_end_do_so_side_by_side() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("readable");
    let work = folder.path().join("proxy");
    let start = |name: &str, at_the_end: &str| {
        let script = format!("trap '{at_the_end}' TERM; touch ready-{name}; sleep 600 & wait");
        let running = shell(&script, folder.path()).expect("started");
        while !work.join(format!("ready-{name}")).exists() {
            std::thread::sleep(TICK);
        }
        running
    };
    let first = start("first", "until test -e asked; do sleep 0.01; done; touch ended; exit 0");
    let second = start("second", "touch asked; exit 0");
    let mut both = [first, second];
    both.iter_mut().for_each(Running::ask_to_end);
    drop(both);
    assert!(work.join("ended").exists());
}

#[test]
fn a_proxy_that_ends_at_once_is_known_by_its_last_words() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("readable");
    let mut running = shell("echo no such directive; exit 1", folder.path()).expect("started");
    let status = loop {
        match running.ended() {
            Some(status) => break status,
            None => std::thread::sleep(TICK),
        }
    };
    assert_eq!((status.code(), running.last_words().as_str()), (Some(1), "no such directive"));
    assert!(running.usage().is_none());
}

#[test]
fn what_a_proxy_speaks_tls_with_lies_in_its_folder_and_its_key_is_for_it_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("readable");
    let own = MadeCertificate { certificate: "shown".into(), key: "secret".into() };
    let papers = Some(Papers { own, authority: "trusted".into() });
    let description = Description { papers, ..described(folder.path()) };
    let plan = Plan { serve: vec!["-c".into(), "cat key.pem".into()], ..Plan::default() };
    let peer = Peer::find("nginx").expect("known");
    let mut running =
        Running::start(&peer, Path::new("/bin/sh"), &description, &plan, None).expect("started");
    while running.ended().is_none() {
        std::thread::sleep(TICK);
    }
    assert_eq!(running.last_words(), "secret", "whoever it runs as can read it");
    for (name, text, mode) in [
        ("certificate.pem", "shown", 0o644),
        ("key.pem", "secret", 0o600),
        ("authority.pem", "trusted", 0o644),
    ] {
        let path = description.folder.join(name);
        assert_eq!(std::fs::read_to_string(&path).expect("there"), text);
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o777, mode, "{name}");
    }
}
