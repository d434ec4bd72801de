//! Tests the engine on NATS against a real server: positions, records, removals, restarts.
//! `FOXY_NATS_SERVER` names another program than `cargo xtask tools` installs.

use foxy_fleet::purges::address::EngineAddress;
use foxy_fleet::purges::engine::{
    Append, Appended, Connected, Durability, Engine, EngineError, LogView,
};
use foxy_fleet::purges::entry::Process;
use foxy_fleet::purges::lease::MemberRecord;
use foxy_testkit::ports::free_address;
use foxy_testkit::wait::until;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

struct Server {
    folder: TempDir,
    program: PathBuf,
    address: SocketAddr,
    child: Option<Child>,
}

impl Server {
    fn start() -> Option<Self> {
        let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("tools");
        let installed = tools.join("python/bin/nats-server");
        let program = std::env::var_os("FOXY_NATS_SERVER").map_or(installed, PathBuf::from);
        if !program.exists() {
            #[expect(clippy::print_stderr, reason = "tells the developer")]
            {
                eprintln!("NOT RUN: no nats-server; `cargo xtask tools` installs it");
            }
            return None;
        }
        let (folder, address) = (tempfile::tempdir().expect("a folder"), free_address());
        let mut server = Self { folder, program, address, child: None };
        server.restart();
        Some(server)
    }

    fn restart(&mut self) {
        self.kill();
        let port = self.address.port().to_string();
        let mut command = Command::new(&self.program);
        command.args(["--addr", "127.0.0.1", "--port", &port, "--jetstream", "--store_dir"]);
        command.arg(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().expect("nats-server starts"));
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a running child");
            child.wait().expect("a child");
        }
    }

    fn at(&self, end: &str) -> EngineAddress {
        EngineAddress::new(&format!("nats://{}{end}", self.address), None).expect("a URL")
    }

    fn engine(&self) -> Box<dyn Engine> {
        let mut engine = self.at("").engine();
        connect(&mut *engine);
        engine
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn connect(engine: &mut dyn Engine) -> Connected {
    until("a connection", || engine.connect().ok())
}

/// Appends until the result is as expected. A slow machine may lose the answer of an append.
fn append(engine: &mut dyn Engine, position: u64, drops_earlier: bool, expected: Appended) {
    let append = Append { position, bytes: vec![7; position as usize], drops_earlier };
    until("an append", || match engine.append(&append) {
        Ok(result) => {
            assert_eq!(result, expected, "position {position}");
            Some(())
        }
        Err(_) => {
            connect(engine);
            let is_there = read(engine, 0).tail >= position;
            (is_there && expected == Appended::Done).then_some(())
        }
    });
}

/// Exchanges until there is an answer.
fn exchange(
    engine: &mut dyn Engine,
    record: Option<&MemberRecord>,
    gone: &[Process],
    after: u64,
) -> LogView {
    until("an exchange", || {
        let view = engine.exchange(record, gone, after).ok();
        if view.is_none() {
            connect(engine);
        }
        view
    })
}

fn read(engine: &mut dyn Engine, after: u64) -> LogView {
    exchange(engine, None, &[], after)
}

fn facts(view: &LogView) -> (u64, u64, u64, Vec<u64>) {
    let entries = view.entries.iter().map(|(position, _)| *position).collect();
    (view.first, view.tail, view.count, entries)
}

fn record(member: &str, counter: u64) -> MemberRecord {
    MemberRecord {
        process: Process { member: member.into(), run: 1 },
        counter,
        attests: Some(3),
        vouches: true,
        chain: 4,
        position: 5,
        hash: 6,
        wants_lease: true,
    }
}

#[test]
fn two_writers_never_take_the_same_position() {
    let Some(server) = Server::start() else { return };
    let (mut one, mut other) = (server.engine(), server.engine());
    assert_eq!(facts(&read(&mut *one, 0)), (0, 0, 0, vec![]));
    append(&mut *one, 1, true, Appended::Done);
    append(&mut *other, 1, false, Appended::Taken);
    for position in 2..=40 {
        append(&mut *other, position, false, Appended::Done);
        append(&mut *one, position, false, Appended::Taken);
    }
    append(&mut *one, 42, false, Appended::Taken);
    let view = read(&mut *one, 2);
    assert_eq!(facts(&view), (1, 40, 40, (3..=40).collect()));
    assert_eq!(view.last, Some(vec![7; 40]));
    assert_eq!(view.entries[0], (3, vec![7; 3]));
    assert_eq!(read(&mut *one, 40).last, Some(vec![7; 40]), "without a new entry");
}

#[test]
fn an_entry_can_drop_all_earlier_entries_and_leave_a_gap() {
    let Some(server) = Server::start() else { return };
    let mut engine = server.engine();
    for position in 1..=3 {
        append(&mut *engine, position, false, Appended::Done);
    }
    append(&mut *engine, 4, true, Appended::Done);
    assert_eq!(facts(&read(&mut *engine, 0)), (4, 4, 1, vec![4]));
    append(&mut *engine, 9, true, Appended::Done);
    assert_eq!(facts(&read(&mut *engine, 4)), (9, 9, 1, vec![9]));
    append(&mut *engine, 8, true, Appended::Taken);
    append(&mut *engine, 10, false, Appended::Done);
    assert_eq!(facts(&read(&mut *engine, 8)), (9, 10, 2, vec![9, 10]));
}

#[test]
fn records_replace_each_other_and_only_known_records_are_removed() {
    let Some(server) = Server::start() else { return };
    let (mut one, mut other) = (server.engine(), server.engine());
    let (first, gone) = (record("a.test", 1), record("b", 1));
    exchange(&mut *other, Some(&gone), &[], 0);
    let view = exchange(&mut *one, Some(&first), &[], 0);
    let mut records = view.records;
    records.sort_by(|one, other| one.process.cmp(&other.process));
    assert_eq!(records, [first, gone.clone()]);
    // The process is not gone: it writes again before the removal.
    let (again, second) = (record("b", 2), record("a.test", 2));
    exchange(&mut *other, Some(&again), &[], 0);
    let processes = [gone.process];
    let view = exchange(&mut *one, Some(&second), &processes, 0);
    assert!(view.records.contains(&again) && view.records.contains(&second), "{view:?}");
    until("the removal", || {
        let view = exchange(&mut *one, Some(&second), &processes, 0);
        (view.records == [second.clone()]).then_some(())
    });
}

#[test]
fn a_restart_changes_the_incarnation_and_keeps_the_log() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut other) = (server.at("").engine(), server.at("/other").engine());
    let first = connect(&mut *engine);
    assert_eq!(first.durability, Durability::Unknown);
    assert_eq!(connect(&mut *engine), first);
    assert_ne!(connect(&mut *other).incarnation, first.incarnation);
    append(&mut *engine, 1, true, Appended::Done);
    exchange(&mut *engine, Some(&record("a", 1)), &[], 0);
    assert_eq!(read(&mut *other, 0), LogView::default(), "another fleet");
    let mut watch = server.at("").watch();
    until("the watch", || watch.wait(0).ok());
    server.restart();
    let error = engine.exchange(None, &[], 0);
    assert!(matches!(error, Err(EngineError::Away(_))), "{error:?}");
    assert_ne!(connect(&mut *engine).incarnation, first.incarnation);
    let view = read(&mut *engine, 0);
    assert_eq!((facts(&view), view.records), ((1, 1, 1, vec![1]), vec![]));
    until("the watch", || watch.wait(0).ok());
    server.kill();
    assert!(engine.connect().is_err() && engine.exchange(None, &[], 0).is_err());
}
