//! Replays every script in `scripts/`. Each script once made a store violate its contract
//! (`foxy_store::contract`). Also runs some thousand new schedules against every storage scheme.

use foxy_torture::campaign::Campaign;
use foxy_torture::run;
use foxy_torture::script::Script;
use foxy_torture::subject::{self, Limits, SCHEMES, Subject};
use foxy_torture::violation::{Bound, Violation};
use std::fs;
use std::path::Path;

#[test]
fn no_script_fails_again() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    for entry in fs::read_dir(&directory).expect("the scripts are there") {
        let path = entry.expect("a readable directory").path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a readable script");
        let script: Script =
            text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let subject = subject::find(&script.scheme)
            .unwrap_or_else(|| panic!("{}: no such scheme", path.display()));
        let outcome = run::run(&script, subject);
        assert!(outcome.failure.is_none(), "{}: {:?}", path.display(), outcome.failure);
    }
}

#[test]
fn a_store_that_takes_more_disk_than_its_size_is_caught() {
    let buddy = subject::find("buddy").expect("a scheme of that name");
    let limits = Limits { disk_bytes: 1000, ..buddy.limits };
    let script: Script = "scheme buddy\nseed 1\nput 1 1 2000\nsettle\n".parse().expect("a script");
    let failure =
        run::run(&script, &Subject { limits, ..*buddy }).failure.expect("more than 1,000 B");
    let violation = failure.violation;
    assert!(
        matches!(violation, Violation::OverBound { what: Bound::DiskBytes, .. }),
        "{violation}"
    );
}

#[test]
fn every_scheme_holds_in_fresh_schedules() {
    for subject in SCHEMES {
        let campaign = Campaign { first_seed: 1, schedules: 300, threads: 2 };
        let findings = campaign.against(subject, &|_| {});
        assert!(findings.found.is_none(), "{}", findings.found.expect("just seen"));
    }
}
