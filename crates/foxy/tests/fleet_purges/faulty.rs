//! Causes faults in a fleet, and ends them.

use crate::checker::{Checker, add};
use crate::engine::EngineServer;
use crate::fleet::{Fleet, NAMES};
use crate::ground::Link;
use crate::plan::{Fault, Faults, Planned};
use foxy_base::clock;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Pause between two removals of entries.
const REMOVAL_PAUSE: Duration = Duration::from_millis(3);

/// The fleet and the engine that faults affect.
pub struct Subjects {
    pub fleet: Mutex<Fleet>,
    pub engine: Mutex<EngineServer>,
    /// The targets of present faults.
    pub busy: Mutex<BTreeSet<usize>>,
}

impl Subjects {
    /// Causes faults until `is_over` is true. All faults have ended when this function returns.
    pub fn disturb(&self, faults: &mut Faults, checker: &Checker, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            let Some(planned) = faults.next() else { return };
            let target = planned.fault.target(planned.node);
            if !self.busy.lock().expect("sound").insert(target) {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            let text = format!("{planned:?}");
            checker.begin(planned.fault, &format!("begin {text}"));
            self.fault(planned, checker, is_over);
            checker.note(&format!("end {text}"));
            self.busy.lock().expect("sound").remove(&target);
            pause(planned.rest, is_over);
        }
    }

    fn fault(&self, planned: Planned, checker: &Checker, is_over: &AtomicBool) {
        let Planned { fault, node, length, .. } = planned;
        match fault {
            Fault::KillNode => {
                self.fleet.lock().expect("sound").kill(node);
                pause(length, is_over);
                self.fleet.lock().expect("sound").begin(node);
            }
            Fault::PauseNode => {
                self.fleet.lock().expect("sound").node(node).signal("STOP");
                pause(length, is_over);
                self.fleet.lock().expect("sound").node(node).signal("CONT");
            }
            Fault::CutNodeFromEngine => self.cut(&[Link::Engine(node)], planned, is_over),
            Fault::CutNodeFromNodes => self.cut(&[Link::Nodes(node)], planned, is_over),
            Fault::CutEngine => {
                let links: Vec<_> = (0..NAMES.len()).map(Link::Engine).collect();
                self.cut(&links, planned, is_over);
            }
            Fault::KillEngine | Fault::WipeEngine => {
                let mut engine = self.engine.lock().expect("sound");
                match fault {
                    Fault::WipeEngine => engine.kill_and_wipe(),
                    _ => engine.kill(),
                }
                pause(length, is_over);
                engine.restart();
            }
            Fault::PauseEngine => {
                let engine = self.engine.lock().expect("sound");
                engine.signal("STOP");
                pause(length, is_over);
                engine.signal("CONT");
            }
            Fault::RemoveEntries | Fault::RollLogBack => {
                self.remove_entries(planned, checker, is_over);
            }
        }
    }

    fn cut(&self, links: &[Link], planned: Planned, is_over: &AtomicBool) {
        let switch = |act: &dyn Fn(&Fleet, Link)| {
            let fleet = self.fleet.lock().expect("sound");
            links.iter().for_each(|link| act(&fleet, *link));
        };
        switch(&|fleet, link| fleet.ground.cut(link, planned.cut));
        pause(planned.length, is_over);
        switch(&|fleet, link| fleet.ground.mend(link, planned.cut));
    }

    /// Takes new entries out of the log as soon as they are there. Some nodes have read these
    /// entries already, others have not.
    fn remove_entries(&self, planned: Planned, checker: &Checker, is_over: &AtomicBool) {
        let is_rolled_back = planned.fault == Fault::RollLogBack;
        let begun = clock::monotonic();
        let mut known = None;
        while clock::monotonic().since(begun) < planned.length && !is_over.load(Ordering::Acquire) {
            {
                let engine = self.engine.lock().expect("sound");
                let after = *known.get_or_insert_with(|| engine.tail());
                let removed = engine.remove_last(after, 3, is_rolled_back);
                if removed > 0 {
                    add(&checker.counts.removed_entries, removed);
                    checker.note(&format!("{removed} entries after {after} are gone"));
                    known = None;
                }
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }
}

/// Sleeps for a time, or until `is_over`.
fn pause(time: Duration, is_over: &AtomicBool) {
    let begun = clock::monotonic();
    while clock::monotonic().since(begun) < time && !is_over.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(5));
    }
}
