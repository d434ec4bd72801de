//! The simulated world: members, an engine, an origin, clients and faults. A seed decides the
//! events. A checker compares each hit with the purges that were acknowledged before.

use crate::Mutant;
use crate::engine::SimEngine;
use crate::member::{Member, Step};
use foxy_base::{Random, WallTime};
use foxy_fleet::purges::engine::{Appended, LogView};
use foxy_fleet::purges::lease::LeaseTerms;
use foxy_fleet::purges::session::{Task, Ticket};
use foxy_proxy::cache::purge::{NotPurged, Order, Scope, Strength};
use std::collections::BTreeMap;

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
const MEMBERS: usize = 3;
const OBJECTS: u64 = 12;
/// End of the time with faults. Afterwards, the fleet must recover.
const FAULTS_END: u64 = 40 * SECOND;
const END: u64 = 60 * SECOND;

enum Call {
    Connected(u64),
    Appended(Appended),
    Exchanged(Box<LogView>),
    Failed,
}

enum Event {
    /// The member looks for its next step.
    Turn,
    /// A request reaches the engine.
    Request,
    /// The member sends the next request of an exchange.
    NextRequest,
    /// An answer reaches the member.
    Answer(Call),
    /// The disk has done a task.
    Durable,
    /// The member crashes while its disk is busy.
    Kill,
    Start,
    /// Another member enters or leaves the list of this member.
    List(usize, bool),
    /// All lists have the member again.
    Rejoin,
    Get(u128),
    Fetched(u128, u64, u64),
    Purge(u128),
    Fault,
    EngineBack(usize),
}

pub struct World {
    now: u64,
    number: u64,
    events: BTreeMap<(u64, u64), (usize, u64, Event)>,
    random: Random,
    engine: SimEngine,
    members: Vec<Member>,
    versions: BTreeMap<u128, u64>,
    acknowledged: BTreeMap<u128, u64>,
    purges: BTreeMap<Ticket, (u128, u64, u64)>,
    tickets: Ticket,
    script: Vec<String>,
    pub stale: u64,
    pub hits: u64,
    pub acks: u64,
    pub late_acks: u64,
    mutant: Mutant,
}

impl World {
    pub fn new(seed: u64, terms: LeaseTerms, drift_ppm: u64, mutant: Mutant) -> Self {
        let mut random = Random::new(seed);
        let names: Vec<Box<str>> = ["a", "b", "c"].map(Into::into).to_vec();
        let members = (0..MEMBERS)
            .map(|number| {
                let drift = i64::try_from(drift_ppm).expect("small");
                // The largest deviations are the hardest case.
                let drift = if random.chance(0.5) { drift } else { -drift };
                Member::new(number, &names, terms, drift, mutant)
            })
            .collect();
        let mut world = Self {
            now: 0,
            number: 0,
            events: BTreeMap::new(),
            random,
            engine: SimEngine::new(),
            members,
            versions: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            purges: BTreeMap::new(),
            tickets: 0,
            script: Vec::new(),
            stale: 0,
            hits: 0,
            acks: 0,
            late_acks: 0,
            mutant,
        };
        for member in 0..MEMBERS {
            world.at(0, member, Event::Start);
        }
        world.at(SECOND, 0, Event::Fault);
        world.traffic();
        world
    }

    /// Runs all events.
    ///
    /// # Errors
    /// An answer was stale. Returns the list of all events.
    pub fn run(&mut self) -> Result<(), String> {
        while let Some(((at, _), (member, life, event))) = self.events.pop_first() {
            if at > END {
                break;
            }
            self.now = at;
            let paused = self.members[member].paused_until;
            let is_own = !matches!(
                event,
                Event::Request
                    | Event::Fault
                    | Event::EngineBack(_)
                    | Event::List(..)
                    | Event::Rejoin
            );
            if is_own && paused > at {
                self.number += 1;
                self.events.insert((paused, self.number), (member, life, event));
                continue;
            }
            let is_of_any_life = matches!(
                event,
                Event::Start
                    | Event::List(..)
                    | Event::Rejoin
                    | Event::Get(_)
                    | Event::Purge(_)
                    | Event::Fault
                    | Event::EngineBack(_)
            );
            if is_of_any_life || life == self.members[member].life {
                self.handle(member, event);
            }
            if self.stale > 0 {
                return Err(self.script.join("\n"));
            }
        }
        Ok(())
    }

    fn at(&mut self, after: u64, member: usize, event: Event) {
        self.number += 1;
        let life = self.members[member].life;
        self.events.insert((self.now + after, self.number), (member, life, event));
    }

    fn note(&mut self, text: &str) {
        self.script.push(format!("{:>9.3} ms  {text}", self.now as f64 / MILLI as f64));
    }

    fn traffic(&mut self) {
        let mut at = 0;
        while at < END {
            at += self.random.below(6 * MILLI);
            let member = self.random.below(MEMBERS as u64) as usize;
            let object = u128::from(self.random.below(OBJECTS));
            let is_purge = self.random.chance(0.02);
            self.at(at, member, if is_purge { Event::Purge(object) } else { Event::Get(object) });
        }
    }

    fn handle(&mut self, number: usize, event: Event) {
        match event {
            Event::Start if self.may_start(number) => {
                self.note(&format!("start {}", self.members[number].name));
                self.members[number].start(&mut self.random);
                self.at(0, number, Event::Turn);
            }
            Event::Start => {}
            Event::List(other, is_listed) => {
                let name = self.members[other].name.clone();
                let verb = if is_listed { "adds" } else { "removes" };
                self.note(&format!("{} {verb} {name}", self.members[number].name));
                self.members[number].list(&name, is_listed, self.now);
                self.at(0, number, Event::Turn);
            }
            Event::Rejoin => {
                self.members[number].has_left = false;
                self.at(0, number, Event::Start);
            }
            Event::Kill => {
                self.note(&format!("kill {} while its disk is busy", self.members[number].name));
                self.members[number].kill();
                self.at(SECOND, number, Event::Start);
            }
            Event::Turn => self.turn(number),
            Event::Request | Event::NextRequest => self.request(number),
            Event::Answer(call) => self.answer(number, call),
            Event::Durable => self.durable(number),
            Event::Get(object) => self.get(number, object),
            Event::Fetched(object, version, begun) => {
                self.members[number].keep(object, version, begun);
            }
            Event::Purge(object) => self.purge(number, object),
            Event::Fault => self.fault(),
            Event::EngineBack(lost) => {
                self.note(&format!("engine starts without its last {lost} entries"));
                self.engine.restart(lost, &mut self.random);
            }
        }
    }

    fn may_start(&self, number: usize) -> bool {
        let member = &self.members[number];
        member.node.is_none() && !member.has_left
    }

    /// Stops a member. Then the others take it off their lists, add it again, and it starts again.
    fn leave(&mut self, number: usize) {
        self.note(&format!("{} leaves", self.members[number].name));
        self.members[number].kill();
        self.members[number].has_left = true;
        let longest = 4 * SECOND;
        for other in (0..MEMBERS).filter(|other| *other != number) {
            let gone = self.random.below(longest);
            self.at(gone, other, Event::List(number, false));
            let back = longest + self.random.below(longest);
            self.at(back, other, Event::List(number, true));
        }
        self.at(2 * longest, number, Event::Rejoin);
    }

    /// Sometimes puts an earlier copy of a member's list of purges back, or gives the member the
    /// place of another member, or does both. Sometimes the place is lost, too.
    fn change_files(&mut self, number: usize) {
        let other = (number + 1) % MEMBERS;
        let members = self.members.get_disjoint_mut([number, other]);
        let [member, other] = members.expect("two members");
        let change = self.random.below(12);
        match change {
            0 | 2 | 3 => member.put_back_list(),
            1 => {}
            4..=7 => member.back_up_list(),
            _ => return,
        }
        match change {
            1 | 2 => member.copy_place(other),
            3 => member.lose_place(),
            _ => {}
        }
        let both = "old list, place of another";
        let what = ["old list", "place of another", both, "old list, no place", "copy of the list"];
        let text = format!("{} gets: {}", member.name, what[change.min(4) as usize]);
        self.note(&text);
    }

    fn turn(&mut self, number: usize) {
        let member = &mut self.members[number];
        if member.step.is_some() {
            return;
        }
        let now = member.clock(self.now);
        let Some(node) = &mut member.node else { return };
        let delay = 50_000 + self.random.below(2 * MILLI);
        if !node.is_connected() {
            member.step = Some(Step::Connect);
            return self.at(delay, number, Event::Request);
        }
        if let Some(append) = node.next_append() {
            member.step = Some(Step::Append(append));
            return self.at(delay, number, Event::Request);
        }
        let due = node.due();
        if due > now {
            let wait = member.real(due).saturating_sub(self.now);
            return self.at(wait.max(10_000), number, Event::Turn);
        }
        let (gone, after) = (node.gone(now), node.position());
        let record = node.record(now);
        member.step = Some(Step::Write(record, gone, after));
        self.at(delay, number, Event::Request);
    }

    fn request(&mut self, number: usize) {
        let member = &self.members[number];
        // A connection ends with its engine.
        let is_old = !matches!(member.step, Some(Step::Connect))
            && member.connected_to != self.engine.incarnation;
        let is_cut = member.cut_until > self.now || !self.engine.is_up || is_old;
        // A cut link may lose the request, or only the answer.
        let reaches = !is_cut || (self.engine.is_up && !is_old && self.random.chance(0.3));
        let call = match &member.step {
            _ if !reaches => Call::Failed,
            Some(Step::Connect) => Call::Connected(self.engine.incarnation),
            Some(Step::Append(append)) => Call::Appended(self.engine.append(append)),
            Some(Step::Apply(..)) | None => return,
            Some(_) => match self.exchange(number) {
                Some(view) => Call::Exchanged(Box::new(view)),
                None if is_cut => Call::Failed,
                None => {
                    let delay = self.random.below(2 * MILLI);
                    return self.at(delay, number, Event::NextRequest);
                }
            },
        };
        let (call, delay) = if is_cut {
            (Call::Failed, 200 * MILLI)
        } else {
            (call, 50_000 + self.random.below(3 * MILLI))
        };
        self.at(delay, number, Event::Answer(call));
    }

    /// Does a step of an exchange. Returns the result after the last step.
    fn exchange(&mut self, number: usize) -> Option<LogView> {
        let engine = &mut self.engine;
        let next = match self.members[number].step.take()? {
            Step::Write(record, gone, after) => {
                engine.write(record.as_ref(), &gone);
                Step::Records(after)
            }
            Step::Records(after) => Step::Log(engine.records(), after),
            Step::Log(records, after) => Step::Read(LogView { records, ..engine.log(after) }),
            other => other,
        };
        let view = if let Step::Read(view) = &next { Some(view.clone()) } else { None };
        self.members[number].step = Some(next);
        view
    }

    fn answer(&mut self, number: usize, call: Call) {
        let member = &mut self.members[number];
        let now = member.clock(self.now);
        let (Some(node), Some(step)) = (&mut member.node, member.step.take()) else { return };
        match (call, step) {
            (Call::Connected(incarnation), _) => {
                node.connected(incarnation, now);
                member.connected_to = incarnation;
            }
            (Call::Appended(result), Step::Append(append)) => node.appended(&append, result, now),
            (Call::Exchanged(view), _) => {
                let step = member.after_exchange(&view, self.now);
                let Step::Apply(_, saved) = &step else { return };
                if self.mutant == Mutant::SavesBeforeItApplies {
                    member.save_only(saved.clone());
                }
                let is_idle = matches!(step, Step::Apply(Task::Nothing, _));
                member.step = Some(step);
                let delay = 20_000 + self.random.below(4 * MILLI);
                if !is_idle && self.now < FAULTS_END && self.random.chance(0.01) {
                    let soon = self.random.below(delay);
                    self.at(soon, number, Event::Kill);
                }
                return self.at(delay, number, Event::Durable);
            }
            _ => {
                let failed = node.away();
                self.settle(failed);
                return self.at(100 * MILLI, number, Event::Turn);
            }
        }
        self.at(0, number, Event::Turn);
    }

    fn durable(&mut self, number: usize) {
        let member = &mut self.members[number];
        let Some(Step::Apply(task, saved)) = member.step.take() else { return };
        member.apply(&task, saved);
        let now = member.clock(self.now);
        let Some(node) = &mut member.node else { return };
        node.applied(true, now);
        let answers = node.settle();
        self.settle(answers);
        self.at(0, number, Event::Turn);
    }

    fn settle(&mut self, answers: Vec<(Ticket, Result<u64, NotPurged>)>) {
        for (ticket, answer) in answers {
            let Some((object, version, asked)) = self.purges.remove(&ticket) else { continue };
            if answer.is_ok() {
                let known = self.acknowledged.entry(object).or_default();
                *known = version.max(*known);
                self.acks += 1;
                self.late_acks += u64::from(self.now - asked > 2500 * MILLI);
                self.note(&format!("acknowledge the purge of object {object} v{version}"));
            }
        }
    }

    fn get(&mut self, number: usize, object: u128) {
        let version = self.versions.get(&object).copied().unwrap_or(0);
        let member = &self.members[number];
        if member.node.is_none() {
            return;
        }
        let known = self.acknowledged.get(&object).copied().unwrap_or(0);
        match member.hit(object, self.now) {
            Some(served) => {
                self.hits += 1;
                if served < known {
                    self.stale += 1;
                    let name = &self.members[number].name;
                    let text = format!("STALE: {name} serves object {object} v{served} < v{known}");
                    self.note(&text);
                }
            }
            None => {
                let begun = member.moment();
                let delay = self.random.below(30 * MILLI);
                self.at(delay, number, Event::Fetched(object, version, begun));
            }
        }
    }

    fn purge(&mut self, number: usize, object: u128) {
        let version = self.versions.entry(object).or_default();
        *version += 1;
        let version = *version;
        self.tickets += 1;
        let ticket = self.tickets;
        let scope = Scope::Tag(object);
        let order = Order { scope, strength: Strength::Hard, at: WallTime(0) };
        let Some(node) = &mut self.members[number].node else { return };
        if node.purge(ticket, vec![order]).is_ok() {
            self.purges.insert(ticket, (object, version, self.now));
            self.note(&format!(
                "purge object {object} v{version} at {}",
                self.members[number].name
            ));
            self.at(0, number, Event::Turn);
        }
    }

    fn fault(&mut self) {
        if self.now > FAULTS_END {
            return;
        }
        let number = self.random.below(MEMBERS as u64) as usize;
        let length = 100 * MILLI + self.random.below(5 * SECOND);
        let name = self.members[number].name.clone();
        let lost = if self.random.chance(0.5) { self.random.below(4) as usize } else { 0 };
        match self.random.below(12) {
            10 | 11 if self.members.iter().all(|member| !member.has_left) => self.leave(number),
            0 | 1 => {
                self.note(&format!("kill {name}"));
                let did_run = self.members[number].node.is_some();
                self.members[number].kill();
                if self.random.chance(0.1) {
                    self.note(&format!("wipe the disk of {name}"));
                    self.members[number].wipe();
                }
                if did_run {
                    self.change_files(number);
                }
                self.at(length, number, Event::Start);
            }
            2 => {
                self.note(&format!("pause {name} for {} ms", length / MILLI));
                self.members[number].paused_until = self.now + length;
            }
            3 | 4 => {
                self.note(&format!("cut {name} from the engine for {} ms", length / MILLI));
                self.members[number].cut_until = self.now + length;
            }
            5 if self.engine.is_up => {
                self.note("kill the engine");
                self.engine.is_up = false;
                self.at(length / 4, 0, Event::EngineBack(lost));
            }
            6 => {
                self.note("remove an entry");
                self.engine.remove_one(&mut self.random);
            }
            8 | 9 => {
                self.note(&format!("roll the log back by {lost} entries"));
                self.engine.roll_back(lost);
            }
            _ => {
                self.note("trim the log");
                self.engine.trim(3);
            }
        }
        let next = self.random.below(3 * SECOND);
        self.at(next, 0, Event::Fault);
    }

    /// Returns the names of members that have no lease at the end.
    pub fn without_lease(&self) -> Vec<&str> {
        let has_none = |member: &&Member| {
            let lease = member.node.as_ref().map(|node| node.lease_until());
            lease.is_none_or(|until| until < member.clock(self.now))
        };
        self.members.iter().filter(has_none).map(|member| &*member.name).collect()
    }
}
