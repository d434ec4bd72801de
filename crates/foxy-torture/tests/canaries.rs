//! Tests of the torture tests. They must find the flaw of every flawed canary within a fixed number
//! of schedules, and shrink the failure to a few steps. The canary without a flaw must pass.

use foxy_torture::campaign::{Campaign, Findings};
use foxy_torture::run;
use foxy_torture::script::Script;
use foxy_torture::subject::{self, Subject};
use foxy_torture::violation::Violation;

/// Number of schedules within which the torture tests must find a flaw.
const BUDGET: u64 = 2000;

fn torture(name: &str) -> (&'static Subject, Findings) {
    let subject = subject::find(name).expect("a canary of that name");
    let campaign = Campaign { first_seed: 1, schedules: BUDGET, threads: 2 };
    (subject, campaign.against(subject, &|_| {}))
}

fn caught(name: &str, steps: usize, expected: fn(&Violation) -> bool) {
    let (subject, findings) = torture(name);
    let found =
        findings.found.unwrap_or_else(|| panic!("{name} was not caught in {BUDGET} schedules"));
    assert!(expected(&found.failure.violation), "{name} failed in an unexpected way:\n{found}");
    assert!(found.script.steps.len() <= steps, "{name} should shrink to {steps} steps:\n{found}");
    let text = found.to_string();
    let again = run::run(&text.parse().expect("a printed script reads back"), subject);
    assert_eq!(
        again.failure,
        Some(found.failure),
        "replaying the printed script fails in the same way:\n{text}"
    );
}

#[test]
fn the_honest_canary_passes() {
    let (_, findings) = torture("canary-honest");
    assert!(findings.found.is_none(), "{}", findings.found.expect("just seen"));
    assert_eq!(findings.schedules, BUDGET);
    let tally = findings.tally;
    assert!(tally.found > BUDGET && tally.done > BUDGET && tally.crashes > BUDGET, "{tally:?}");
}

#[test]
fn a_skipped_checksum_is_caught() {
    caught("canary-skips-checksum", 8, |violation| {
        matches!(violation, Violation::WrongBytes { .. })
    });
}

#[test]
fn a_removal_answered_before_its_sync_is_caught() {
    caught("canary-removes-without-sync", 8, |violation| {
        matches!(violation, Violation::CameBack(_))
    });
}

#[test]
fn a_half_checked_key_is_caught() {
    caught("canary-checks-half-the-key", 6, |violation| {
        matches!(violation, Violation::OtherKey { .. })
    });
}

#[test]
fn a_previous_version_is_caught() {
    caught("canary-serves-previous", 8, |violation| matches!(violation, Violation::CameBack(_)));
}

#[test]
fn a_lost_answer_is_caught() {
    caught("canary-loses-answers", 6, |violation| matches!(violation, Violation::NeverAnswered(_)));
}

#[test]
fn a_look_that_hides_a_record_is_caught() {
    caught("canary-looks-away", 6, |violation| matches!(violation, Violation::LookedAbsent { .. }));
}

#[test]
fn a_look_that_gives_an_older_record_is_caught() {
    caught("canary-looks-back", 6, |violation| matches!(violation, Violation::CameBack(_)));
}

#[test]
fn a_look_that_does_not_check_the_key_after_its_read_is_caught() {
    caught("canary-looks-once", 8, |violation| matches!(violation, Violation::OtherKey { .. }));
}

#[test]
fn a_scheme_of_the_store_that_syncs_nothing_is_caught() {
    caught("canary-ufs-without-sync", 24, |violation| matches!(violation, Violation::CameBack(_)));
    caught("canary-stream-packetizer-without-sync", 24, |violation| {
        matches!(violation, Violation::CameBack(_))
    });
}

#[test]
fn a_snapshot_that_is_not_invalidated_durably_is_caught() {
    let text = "scheme canary-ufs-clean-stop-without-sync\nseed 50258\nrun 1\nrun 4\nput 6 1 0\nrun 4\nput 7 2 0\n\
                put 7 3 0\nrun 1\nrun 5\nput 10 4 0\nreopen\nadvance 19\nput 7 7 0\nrun 4\nput 7 8 0\nrun 4\n\
                put 8 9 0\nrun 2\ncrash power\nsettle\nget 7\n";
    let script: Script = text.parse().expect("a script");
    let canary = subject::find(&script.scheme).expect("a canary");
    let failure = run::run(&script, canary).failure.expect("a record came back");
    assert!(matches!(failure.violation, Violation::CameBack(_)), "{failure:?}");
}
