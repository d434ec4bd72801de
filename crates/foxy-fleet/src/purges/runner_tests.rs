//! Tests that a member can be stopped while its engine blocks the member's thread.

use super::super::engine::{Append, Appended, LogView};
use super::super::lease::MemberRecord;
use super::*;
use std::sync::mpsc::{Sender, channel};

/// An engine whose calls never return, like a server that sends a byte of its answer now and then.
struct Dripping(Sender<()>);

impl Engine for Dripping {
    fn connect(&mut self) -> Result<Connected, EngineError> {
        self.0.send(()).expect("the test waits");
        loop {
            std::thread::park();
        }
    }

    fn append(&mut self, _: &Append) -> Result<Appended, EngineError> {
        unreachable!("not connected")
    }

    fn exchange(
        &mut self,
        _: Option<&MemberRecord>,
        _: &[Process],
        _: u64,
    ) -> Result<LogView, EngineError> {
        unreachable!("not connected")
    }
}

struct Nothing;

impl Watch for Nothing {
    fn wait(&mut self, _: u64) -> Result<(), EngineError> {
        Err(EngineError::Away("no watch".to_owned()))
    }
}

impl PlaceFile for Nothing {
    fn read(&self) -> Option<Saved> {
        None
    }

    fn write(&self, _: &BoundPlace) -> io::Result<()> {
        Ok(())
    }
}

impl PurgeKeeper for Nothing {
    fn purge(&self, _: Vec<Order>, reply: PurgeReply) {
        reply(Err(NotPurged::Stopping));
    }
}

#[test]
fn an_engine_that_never_answers_does_not_prevent_the_end() {
    let (sender, connects) = channel();
    let book = Arc::new(PurgeBook::new(1, 0, &[]));
    let member = FleetMember::start(MemberParts {
        me: Process { member: "a".into(), run: 1 },
        members: vec!["a".into(), "b".into()],
        engine: Box::new(Dripping(sender)),
        watch: Box::new(Nothing),
        local: Purges { book: Arc::clone(&book), keeper: Arc::new(Nothing), fleet: None },
        place: Box::new(Nothing),
        news: Box::new(|_| {}),
        seed: 1,
    });
    let member = member.expect("started");
    connects.recv().expect("the thread asks the engine");
    let keeper = member.keeper();
    // The queue of purges is full, so there is no place for the message that ends the thread.
    for _ in 0..=MAX_QUEUED {
        keeper.purge(Vec::new(), Box::new(|_| {}));
    }
    let begun = clock::monotonic();
    drop(member);
    assert!(clock::monotonic().since(begun) < 5 * STOP_PATIENCE);
}
