//! Tests which bounds of `--fail-if` are met, missed or refused.

use super::*;
use crate::experiment::{Flag, flags};
use clap::Command;

#[test]
fn bars_are_missed_when_they_hold() {
    let records = [Record::Measure(Measure::once("hit_ratio", "x", 0.5, "share"))];
    let check = |bar: &str, expected: usize| {
        let bar: Bar = bar.parse().expect(bar);
        assert_eq!(missed(&[bar], &records, &[]).expect("measured").len(), expected);
    };
    check("hit_ratio<0.9", 1);
    check("hit_ratio < 0.5", 0);
    check("hit_ratio>0.4", 1);
    assert!(missed(&["errors>0".parse().expect("a bar")], &records, &[]).is_err());
}

#[test]
fn a_bar_may_name_a_subject_and_a_workload() {
    let measured = |workload: &str, subject: &str, value| {
        let measure = Measure::once("hit_ratio", subject, value, "share");
        Record::Measure(Measure { workload: Some(workload.into()), ..measure })
    };
    let records = [
        measured("fill", "foxy", 0.9),
        measured("fill", "squid", 0.1),
        measured("zipf", "foxy", 0.2),
    ];
    let check = |bar: &str, expected: &[&str]| {
        let found = missed(&[bar.parse().expect(bar)], &records, &[]).expect("measured");
        assert_eq!(
            found,
            expected.iter().map(|it| format!("--fail-if {bar}: {it}")).collect::<Vec<_>>()
        );
    };
    check("hit_ratio<0.5", &["fill/squid/hit_ratio is 0.1", "zipf/foxy/hit_ratio is 0.2"]);
    check("foxy/hit_ratio<0.5", &["zipf/foxy/hit_ratio is 0.2"]);
    check("fill/foxy/hit_ratio<0.5", &[]);
    assert!(missed(&["zipf/squid/hit_ratio<0.5".parse().expect("a bar")], &records, &[]).is_err());
}

#[test]
fn what_is_no_bar_is_refused() {
    for text in ["errors=>0", "hit_ratio", "<1", "a<b", "a<NaN", ""] {
        assert!(text.parse::<Bar>().is_err(), "{text}");
    }
}

fn refused(bar: &str, measurable: Vec<Measurable>) -> Option<String> {
    let matches = Command::new("x").args(flags([Flag::FailIf("errors>0")])).get_matches_from([
        "x",
        "--fail-if",
        bar,
    ]);
    Bars::of(&matches, measurable).err().map(|error| error.to_string())
}

#[test]
fn a_bar_on_what_cannot_be_measured_is_refused_before_the_run() {
    let known = || {
        let of = |subject| {
            Measurable::of(subject, &["hit_ratio", "errors_{cause}"]).choosing("cause", ["timeout"])
        };
        vec![of("foxy"), of("squid"), Measurable::of("leap", &["refused"])]
    };
    for bar in ["hit_ratio<0.5", "squid/hit_ratio<0.5", "errors_timeout>0", "leap/refused>0"] {
        assert_eq!(refused(bar, known()), None);
    }
    let text = refused("hit_ration<0.5", known()).expect("misspelled");
    assert_eq!(
        text,
        "--fail-if hit_ration<0.5: this run has no measure hit_ration; use hit_ratio, or another \
         of these names:\n  \
         hit_ratio, errors_{cause}, refused\n  {cause}: timeout"
    );
    let text = refused("squit/hit_ratio<0.5", known()).expect("no such proxy");
    let expected = "--fail-if squit/hit_ratio<0.5: hit_ratio is not measured for squit; leave out \
                    squit/, or use one of foxy, squid";
    assert_eq!(text, expected);
    assert!(refused("foxy/refused>0", known()).is_some_and(|text| text.ends_with("one of leap")));
}

#[test]
fn a_bar_may_name_any_subject_where_none_is_known_and_only_workloads_that_there_are() {
    let any = || vec![Measurable::of_any(&["requests"])];
    assert_eq!(refused("10.0.0.1/requests>1", any()), None);
    let known = || vec![Measurable::of("foxy", &["errors"]).under("fill")];
    assert_eq!(refused("fill/foxy/errors>0", known()), None);
    assert!(
        refused("zipf/foxy/errors>0", known())
            .is_some_and(|text| text.ends_with("one of fill/foxy"))
    );
}

#[test]
fn a_cause_of_errors_that_did_not_come_is_none() {
    let known = [Measurable::of("foxy", &["errors_timeout"])];
    let check = |bar: &str| missed(&[bar.parse().expect("a bar")], &[], &known);
    assert_eq!(check("errors_timeout>0").expect("known"), Vec::<String>::new());
    assert_eq!(
        check("errors_timeout<1").expect("known"),
        ["--fail-if errors_timeout<1: errors_timeout is 0"]
    );
    assert!(check("errors_reset>0").is_err());
}
