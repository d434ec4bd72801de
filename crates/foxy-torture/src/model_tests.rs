//! Tests the model of the answers that a store may give. Each test makes a few requests and
//! answers, and checks how the model judges the last answer.

use super::*;
use foxy_store::{AbsentReason, Record, RefusedReason};

const KEY: u32 = 4;

const fn name(version: u32) -> RecordName {
    RecordName { key: KEY, version, size: 100 }
}

/// A model, with short methods for requests and answers. The test chooses the ticket, the number
/// that matches an answer to its request.
#[derive(Default)]
struct Talk(Model);

impl Talk {
    fn ask(&mut self, ticket: u64, asked: Asked) -> &mut Self {
        self.0.ask(Ticket(ticket), asked);
        self
    }

    fn say(&mut self, ticket: u64, answer: Answer) -> Result<Verdict, Violation> {
        self.0.answer(&StoreReply { ticket: Ticket(ticket), answer })
    }

    fn put(&mut self, ticket: u64, version: u32) -> &mut Self {
        self.ask(ticket, Asked::Put(name(version)));
        assert_eq!(self.say(ticket, Answer::Stored), Ok(Verdict::Done));
        self
    }

    fn get(&mut self, version: u32) -> Result<Verdict, Violation> {
        self.ask(900, Asked::Get(KEY));
        self.say(900, found(version))
    }
}

fn found(version: u32) -> Answer {
    Answer::Found(content::record(name(version)))
}

#[test]
fn the_last_finished_put_and_nothing_are_both_allowed() {
    let mut talk = Talk::default();
    talk.put(1, 1);
    assert_eq!(talk.get(1), Ok(Verdict::Found));
    talk.ask(2, Asked::Get(KEY));
    assert_eq!(talk.say(2, Answer::Absent(AbsentReason::NotIndexed)), Ok(Verdict::Absent));
}

#[test]
fn a_replaced_record_must_not_come_back() {
    let mut talk = Talk::default();
    talk.put(1, 1).put(2, 2);
    assert_eq!(talk.get(1), Err(Violation::CameBack(name(1))));
}

#[test]
fn a_removed_record_must_not_come_back_even_after_a_crash() {
    let mut talk = Talk::default();
    talk.put(1, 1).ask(2, Asked::Remove(KEY));
    assert_eq!(talk.say(2, Answer::Removed), Ok(Verdict::Done));
    talk.0.crash();
    assert_eq!(talk.get(1), Err(Violation::CameBack(name(1))));
}

#[test]
fn a_put_made_before_a_removal_does_not_survive_it() {
    let mut talk = Talk::default();
    talk.ask(1, Asked::Put(name(1))).ask(2, Asked::Remove(KEY));
    assert_eq!(talk.say(2, Answer::Removed), Ok(Verdict::Done));
    assert_eq!(talk.say(1, Answer::Stored), Ok(Verdict::Done));
    assert_eq!(talk.get(1), Err(Violation::CameBack(name(1))));
}

#[test]
fn a_refused_put_leaves_the_old_record_and_is_never_found() {
    let mut talk = Talk::default();
    talk.put(1, 1).ask(2, Asked::Put(name(2)));
    assert_eq!(talk.say(2, Answer::Refused(RefusedReason::Busy)), Ok(Verdict::Refused));
    assert_eq!(talk.get(1), Ok(Verdict::Found));
    assert_eq!(talk.get(2), Err(Violation::RefusedPut(name(2))));
}

#[test]
fn a_get_that_overlaps_a_put_may_see_either() {
    for version in [1, 2] {
        let mut talk = Talk::default();
        talk.put(1, 1).ask(3, Asked::Get(KEY)).ask(2, Asked::Put(name(2)));
        assert_eq!(talk.say(2, Answer::Stored), Ok(Verdict::Done));
        assert_eq!(talk.say(3, found(version)), Ok(Verdict::Found), "version {version}");
    }
}

#[test]
fn a_put_lost_in_a_crash_may_be_there_or_not_but_not_both_in_turn() {
    let mut talk = Talk::default();
    talk.put(1, 1).ask(2, Asked::Put(name(2)));
    talk.0.crash();
    assert_eq!(talk.0.open_requests(), 0);
    assert_eq!(talk.get(1), Ok(Verdict::Found));
    assert_eq!(talk.get(2), Ok(Verdict::Found));
    assert_eq!(talk.get(1), Err(Violation::CameBack(name(1))));
    talk.0.crash();
    assert_eq!(talk.get(1), Ok(Verdict::Found), "the last finished put, after the power failed");
}

#[test]
fn a_put_refused_by_a_failing_device_may_show_after_a_crash_only() {
    let mut talk = Talk::default();
    talk.put(1, 1).ask(2, Asked::Put(name(2)));
    let failed = Answer::Refused(RefusedReason::DeviceFailed(foxy_device::IoError::Device));
    assert_eq!(talk.say(2, failed), Ok(Verdict::Refused));
    assert_eq!(talk.get(2), Err(Violation::RefusedPut(name(2))));
    talk.0.crash();
    assert_eq!(talk.get(2), Ok(Verdict::Found));
}

#[test]
fn wrong_bytes_and_other_keys_are_named() {
    let mut talk = Talk::default();
    talk.put(1, 1).ask(2, Asked::Get(KEY)).ask(3, Asked::Get(KEY)).ask(4, Asked::Get(KEY));
    let mut wrong = content::record(name(1));
    wrong.body = wrong.body.slice(1..);
    assert_eq!(talk.say(2, Answer::Found(wrong)), Err(Violation::WrongBytes { key: KEY }));
    let other = RecordName { key: KEY + 1, version: 1, size: 3 };
    let answer = Answer::Found(content::record(other));
    assert_eq!(talk.say(3, answer), Err(Violation::OtherKey { asked: KEY, found: other }));
    assert_eq!(
        talk.say(4, found(7)),
        Err(Violation::WrongBytes { key: KEY }),
        "a version nobody put"
    );
}

#[test]
fn each_request_gets_one_answer_of_its_kind() {
    let mut talk = Talk::default();
    talk.put(1, 1);
    assert_eq!(talk.say(1, Answer::Stored), Err(Violation::AnsweredTwice(Ticket(1))));
    talk.ask(2, Asked::Get(KEY)).ask(3, Asked::Close);
    assert_eq!(talk.0.oldest_open(), Some(Ticket(2)));
    assert_eq!(talk.say(2, Answer::Stored), Err(Violation::WrongKind(Ticket(2))));
    assert_eq!(talk.say(3, Answer::Found(Record::default())), Err(Violation::WrongKind(Ticket(3))));
}
