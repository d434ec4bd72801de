//! A simulated member: a node with its clock, its cache, and its disk.

use crate::Mutant;
use foxy_base::{Instant, Random};
use foxy_fleet::purges::engine::{Append, LogView};
use foxy_fleet::purges::entry::Process;
use foxy_fleet::purges::lease::{LeaseTerms, MemberRecord};
use foxy_fleet::purges::node::Node;
use foxy_fleet::purges::saved::{Binding, BoundPlace, Saved};
use foxy_fleet::purges::session::Task;
use foxy_proxy::cache::purge::{Order, Scope};
use std::collections::BTreeMap;

/// A stored version of an object, and the number of the last purge before its fetch.
#[derive(Clone, Copy)]
struct Kept {
    version: u64,
    begun: u64,
}

/// The list of purges that the member has applied.
#[derive(Clone, Default)]
struct List {
    moment: u64,
    purged: BTreeMap<u128, u64>,
    doubted: u64,
}

/// The cache and the list of purges, which survive a crash.
#[derive(Default)]
struct Disk {
    /// The place in the log, with the node and the list that it belongs to.
    place: Option<BoundPlace>,
    list: List,
    /// An earlier copy of the list.
    backup: List,
    kept: BTreeMap<u128, Kept>,
}

/// The step that a member has begun and not finished. An exchange has three steps. Other members
/// may act between them.
pub enum Step {
    Connect,
    Append(Append),
    /// Write the record, and remove others. Then read the log after a position.
    Write(Option<MemberRecord>, Vec<Process>, u64),
    /// Read the records.
    Records(u64),
    /// Read the log. The records are known.
    Log(Vec<MemberRecord>, u64),
    /// The exchange is complete, but the answer has not arrived.
    Read(LogView),
    Apply(Task, Option<Saved>),
}

pub struct Member {
    pub name: Box<str>,
    names: Vec<Box<str>>,
    terms: LeaseTerms,
    /// Deviation of the clock's pace from real time, in millionths. A slow clock has a negative
    /// deviation.
    drift_ppm: i64,
    offset: u64,
    disk: Disk,
    pub node: Option<Node>,
    /// Whether the member has left the fleet, so that it must not start.
    pub has_left: bool,
    pub step: Option<Step>,
    /// Number of starts and crashes. Events of an earlier life do nothing.
    pub life: u64,
    /// End of the process's pause, in real time.
    pub paused_until: u64,
    /// End of the time in which the link to the engine is cut, in real time.
    pub cut_until: u64,
    /// The incarnation of the engine to which the connection leads.
    pub connected_to: u64,
    mutant: Mutant,
}

impl Member {
    pub fn new(
        number: usize,
        names: &[Box<str>],
        terms: LeaseTerms,
        drift_ppm: i64,
        mutant: Mutant,
    ) -> Self {
        Self {
            name: names[number].clone(),
            names: names.to_vec(),
            terms,
            drift_ppm,
            offset: 1_000_000_000 * (number as u64 + 1),
            disk: Disk::default(),
            node: None,
            has_left: false,
            step: None,
            life: 0,
            paused_until: 0,
            cut_until: 0,
            connected_to: 0,
            mutant,
        }
    }

    /// Returns the reading of this member's clock at a real time.
    pub fn clock(&self, real: u64) -> Instant {
        let more = i128::from(real) * i128::from(self.drift_ppm) / 1_000_000;
        Instant(self.offset + u64::try_from(i128::from(real) + more).expect("a time"))
    }

    /// Returns the real time at which this member's clock shows `at`, or a little later.
    pub fn real(&self, at: Instant) -> u64 {
        let shown = i128::from(at.0.saturating_sub(self.offset));
        let real = shown * 1_000_000 / (1_000_000 + i128::from(self.drift_ppm));
        u64::try_from(real).expect("a time") + 1
    }

    pub fn start(&mut self, random: &mut Random) {
        let me = Process { member: self.name.clone(), run: random.next_u64() };
        let now = self.binding();
        let found = self.disk.place.as_ref().map(|place| place.binding);
        let fits = |binding: Binding| {
            self.mutant == Mutant::TrustsAnyPlace || binding.mismatch(&now).is_none()
        };
        if !found.is_some_and(fits) {
            let binding = now.renewed(found.as_ref(), self.jump(random));
            self.disk.place = Some(BoundPlace { saved: None, binding });
            self.disk.list.moment = binding.latest;
        }
        let saved = self.disk.place.as_ref().and_then(|place| place.saved.clone());
        self.node = Some(Node::new(me, &self.names, self.terms, saved, random.next_u64()));
        self.step = None;
        self.life += 1;
    }

    fn jump(&self, random: &mut Random) -> u64 {
        if self.mutant == Mutant::JumpsAlike { 0 } else { random.next_u64() }
    }

    /// Adds a member to the list, or takes it off.
    pub fn list(&mut self, name: &str, is_listed: bool, real: u64) {
        self.names.retain(|other| **other != *name);
        if is_listed {
            self.names.push(name.into());
        }
        let now = self.clock(real);
        if let Some(node) = &mut self.node {
            node.set_members(&self.names, now);
        }
    }

    pub fn kill(&mut self) {
        self.node = None;
        self.step = None;
        self.life += 1;
    }

    /// Replaces the disk by an empty disk.
    pub fn wipe(&mut self) {
        self.disk = Disk::default();
    }

    fn binding(&self) -> Binding {
        Binding::new(&self.name, 1, self.disk.list.moment)
    }

    /// Makes a copy of the list of purges.
    pub fn back_up_list(&mut self) {
        self.disk.backup = self.disk.list.clone();
    }

    /// Puts the earlier copy of the list of purges back.
    pub fn put_back_list(&mut self) {
        self.disk.list = self.disk.backup.clone();
    }

    /// Loses the file with the place in the log.
    pub fn lose_place(&mut self) {
        self.disk.place = None;
    }

    /// Copies the file with the place in the log from another member.
    pub fn copy_place(&mut self, other: &Self) {
        if other.disk.place.is_some() {
            self.disk.place.clone_from(&other.disk.place);
        }
    }

    /// Does a task durably and saves the place.
    pub fn apply(&mut self, task: &Task, saved: Option<Saved>) {
        self.do_task(task);
        self.save_only(saved);
    }

    fn do_task(&mut self, task: &Task) {
        match task {
            Task::Nothing => {}
            Task::Apply(orders) => orders.iter().for_each(|order| self.apply_order(order)),
            Task::Validate(_) if self.mutant == Mutant::TrustsBrokenChains => {}
            Task::Validate(_) => {
                self.disk.list.moment += 1;
                self.disk.list.doubted = self.disk.list.moment;
            }
        }
    }

    pub fn save_only(&mut self, saved: Option<Saved>) {
        let binding = self.binding();
        if saved.is_some() {
            self.disk.place = Some(BoundPlace { saved, binding });
        }
    }

    fn apply_order(&mut self, order: &Order) {
        let list = &mut self.disk.list;
        list.moment += 1;
        if let Scope::Tag(object) = order.scope {
            list.purged.insert(object, list.moment);
        }
    }

    /// Returns the stored version of an object if the member may serve it without validation.
    pub fn hit(&self, object: u128, real: u64) -> Option<u64> {
        let node = self.node.as_ref()?;
        let kept = self.disk.kept.get(&object)?;
        let list = &self.disk.list;
        let purged = list.purged.get(&object).copied().unwrap_or(0);
        let is_leased = self.clock(real) < node.lease_until();
        let is_known = kept.begun <= list.moment;
        (is_leased && is_known && kept.begun >= purged && kept.begun >= list.doubted)
            .then_some(kept.version)
    }

    /// Returns the number of the last purge, for a fetch that begins.
    pub fn moment(&self) -> u64 {
        self.disk.list.moment
    }

    pub fn keep(&mut self, object: u128, version: u64, begun: u64) {
        let is_older = |kept: &Kept| kept.begun <= begun || kept.begun > self.disk.list.moment;
        if self.disk.kept.get(&object).is_none_or(is_older) {
            self.disk.kept.insert(object, Kept { version, begun });
        }
    }

    /// Returns the step that follows the result of an exchange.
    pub fn after_exchange(&mut self, view: &LogView, real: u64) -> Step {
        let now = self.clock(real);
        let node = self.node.as_mut().expect("a running node");
        let task = node.exchanged(view, now);
        let saved = node.to_save().cloned();
        Step::Apply(task, saved)
    }
}
